#include "attention.h"

#include "problem.h"

typedef attn_status attention_call(attn_context *, const attn_params *, const attn_tensor *,
                                   const attn_tensor *, const attn_tensor *, const attn_tensor *,
                                   const attn_tensor *);

/* What the caller said of the statistics: nothing, True (made) or an array (written). */
struct wanted_stats {
    bool wanted;
    PyObject *object;
};

static struct wanted_stats read_stats(PyObject *given)
{
    if (!given || given == Py_False)
        return (struct wanted_stats){0};
    return (struct wanted_stats){.wanted = true, .object = given == Py_True ? NULL : given};
}

static bool open_results(const struct problem *problem, PyObject *const given[KEYWORD_COUNT],
                         const struct wanted_stats *wanted, struct result *out,
                         struct result *stats)
{
    const attn_tensor *q = &problem->tensors[INPUT_Q], *v = &problem->tensors[INPUT_V];
    int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], v->shape[3]};
    const struct array *like = &problem->arrays[INPUT_Q];
    if (!settings_check_tensor(&problem->settings, given[KEYWORD_OUT], "out") ||
        !settings_check_tensor(&problem->settings, wanted->object, "stats"))
        return false;
    if (!result_open(out, given[KEYWORD_OUT], "out", like, q->type, problem->axes, shape))
        return false;
    return !wanted->wanted || problem_open_stats(problem, wanted->object, stats);
}

static PyObject *compute(struct problem *problem, attention_call *call,
                         PyObject *const given[KEYWORD_COUNT])
{
    struct result out = {0}, stats = {0};
    struct wanted_stats wanted = read_stats(given[KEYWORD_STATS]);
    PyObject *answer = NULL;
    if (open_results(problem, given, &wanted, &out, &stats) &&
        problem_check_places(problem, &out, 1) &&
        (problem->settings.detach || array_check_place(&stats.array))) {
        const attn_tensor *inputs = problem->tensors;
        PyThreadState *thread = PyEval_SaveThread();
        attn_status status = call(problem_context(problem), &problem->settings.params,
                                  &inputs[INPUT_Q], &inputs[INPUT_K], &inputs[INPUT_V], &out.tensor,
                                  wanted.wanted ? &stats.tensor : NULL);
        PyEval_RestoreThread(thread);
        if (problem_succeeded(problem, status))
            answer = wanted.wanted ? PyTuple_Pack(2, out.object, stats.object) : result_take(&out);
    }
    result_close(&out);
    result_close(&stats);
    return answer;
}

static PyObject *attend(attention_call *call, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *names)
{
    PyObject *given[KEYWORD_COUNT];
    struct problem problem;
    if (!keywords_read(given, KEYWORD_BIT(KEYWORD_OUT) | KEYWORD_BIT(KEYWORD_STATS),
                       arguments + count, names) ||
        !problem_open(&problem, arguments, count, INPUT_V + 1, given))
        return NULL;
    PyObject *answer = compute(&problem, call, given);
    problem_close(&problem);
    return answer;
}

PyObject *module_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names)
{
    (void)module;
    return attend(attn_forward, arguments, count, names);
}

PyObject *module_decode(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *names)
{
    (void)module;
    return attend(attn_decode, arguments, count, names);
}

enum gradient { GRADIENT_Q, GRADIENT_K, GRADIENT_V, GRADIENT_MASK, GRADIENT_SINKS, GRADIENT_COUNT };

static const struct {
    enum keyword keyword;
    const char *name;
} gradient_names[GRADIENT_COUNT] = {
    [GRADIENT_Q] = {KEYWORD_D_Q, "d_q"},
    [GRADIENT_K] = {KEYWORD_D_K, "d_k"},
    [GRADIENT_V] = {KEYWORD_D_V, "d_v"},
    [GRADIENT_MASK] = {KEYWORD_D_MASK, "d_mask"},
    [GRADIENT_SINKS] = {KEYWORD_D_SINKS, "d_sinks"},
};

/* [H], which libattn sees as [1, H, 1, 1]. */
static void turn_to_heads(attn_tensor *tensor)
{
    tensor->shape[1] = tensor->shape[3];
    tensor->stride[1] = tensor->stride[3];
    tensor->shape[3] = 1;
    tensor->stride[3] = 0;
}

/* Without a mask there is no number of axes that d_mask must have. */
static bool check_have_gradient(const attn_params *params, PyObject *const given[KEYWORD_COUNT])
{
    const char *wrong = NULL;
    if (given[KEYWORD_D_MASK] && !params->bias)
        wrong = "d_mask is given; it needs a floating mask";
    else if (given[KEYWORD_D_SINKS] && !params->sinks)
        wrong = "d_sinks is given; it needs sinks";
    if (wrong)
        PyErr_SetString(PyExc_ValueError, wrong);
    return !wrong;
}

/* The gradients that the call wants are opened as `results` and named in `gradients`. */
static bool open_gradients(const struct problem *problem, PyObject *const given[KEYWORD_COUNT],
                           struct result results[GRADIENT_COUNT], attn_gradients *gradients)
{
    attn_gradients_init(gradients);
    if (!check_have_gradient(&problem->settings.params, given))
        return false;
    const attn_tensor **places[] = {&gradients->q, &gradients->k, &gradients->v, &gradients->bias,
                                    &gradients->sinks};
    for (int i = 0; i < GRADIENT_COUNT; i++) {
        PyObject *object = given[gradient_names[i].keyword];
        if (!object)
            continue;
        int axes = i == GRADIENT_MASK    ? problem->settings.mask.axes
                   : i == GRADIENT_SINKS ? 1
                                         : problem->axes;
        static const int64_t unused[ARRAY_MAX_AXES];
        if (!settings_check_tensor(&problem->settings, object, gradient_names[i].name) ||
            !result_open(&results[i], object, gradient_names[i].name, &problem->arrays[INPUT_Q],
                         ATTN_F32, axes, unused))
            return false;
        if (i == GRADIENT_SINKS)
            turn_to_heads(&results[i].tensor);
        *places[i] = &results[i].tensor;
    }
    return true;
}

static bool compute_gradients(struct problem *problem, PyObject *const given[KEYWORD_COUNT])
{
    struct result results[GRADIENT_COUNT] = {0};
    attn_gradients gradients;
    bool done = open_gradients(problem, given, results, &gradients) &&
                problem_check_places(problem, results, GRADIENT_COUNT);
    if (done) {
        const attn_tensor *inputs = problem->tensors;
        PyThreadState *thread = PyEval_SaveThread();
        attn_status status =
            attn_backward(problem_context(problem), &problem->settings.params, &inputs[INPUT_Q],
                          &inputs[INPUT_K], &inputs[INPUT_V], &inputs[INPUT_OUT],
                          &inputs[INPUT_STATS], &inputs[INPUT_D_OUT], &gradients);
        PyEval_RestoreThread(thread);
        done = problem_succeeded(problem, status);
    }
    for (int i = 0; i < GRADIENT_COUNT; i++)
        result_close(&results[i]);
    return done;
}

PyObject *module_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *names)
{
    (void)module;
    uint32_t further = 0;
    for (int i = 0; i < GRADIENT_COUNT; i++)
        further |= KEYWORD_BIT(gradient_names[i].keyword);
    PyObject *given[KEYWORD_COUNT];
    struct problem problem;
    if (!keywords_read(given, further, arguments + count, names) ||
        !problem_open(&problem, arguments, count, INPUT_D_OUT + 1, given))
        return NULL;
    /* The others were seen before forward; this one comes from whatever followed. */
    if (!array_check_sign(arguments[INPUT_D_OUT], "d_out")) {
        problem_close(&problem);
        return NULL;
    }
    bool done = compute_gradients(&problem, given);
    problem_close(&problem);
    return done ? Py_NewRef(Py_None) : NULL;
}
