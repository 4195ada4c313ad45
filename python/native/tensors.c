#include "tensors.h"

#include "problem.h"

/* Where decode was measured to be the faster one: up to so many queries with so many keys. */
static const struct {
    int64_t queries, keys;
} decode_rule[] = {{4, 0}, {8, 16}, {16, 1024}};
enum { DECODE_RULES = sizeof decode_rule / sizeof *decode_rule };

enum attend_argument {
    ATTEND_QUERY,
    ATTEND_KEY,
    ATTEND_VALUE,
    ATTEND_MASK,
    ATTEND_CAUSAL,
    ATTEND_SCALE,
    ATTEND_GROUPED,
    ATTEND_THREADS,
    ATTEND_STATS,
    ATTEND_COUNT
};

/* What PyTorch told of itself: its types of plain tensors, and torch.empty_like. */
static PyObject *tensor_type, *parameter_type, *empty_like, *bf16_name;

PyObject *module_know_tensors(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "Tensor, Parameter and empty_like are needed");
        return NULL;
    }
    PyObject **places[] = {&tensor_type, &parameter_type, &empty_like};
    for (int i = 0; i < 3; i++) {
        PyObject *known = *places[i];
        *places[i] = Py_NewRef(arguments[i]);
        Py_XDECREF(known);
    }
    if (!bf16_name && !(bf16_name = PyUnicode_InternFromString("bf16")))
        return NULL;
    return Py_NewRef(Py_None);
}

static bool is_tensor(PyObject *object)
{
    PyObject *type = (PyObject *)Py_TYPE(object);
    return type == tensor_type || type == parameter_type;
}

static bool same_type(const struct array *a, const struct array *b)
{
    return a->kind == b->kind && a->bits == b->bits;
}

/* What libattn would do otherwise than PyTorch, or not at all. */
static bool is_simple(const struct problem *problem, bool grouped, bool scaled)
{
    const struct array *q = &problem->arrays[INPUT_Q], *mask = &problem->settings.mask;
    const attn_tensor *tensors = problem->tensors;
    if (!same_type(q, &problem->arrays[INPUT_K]) || !same_type(q, &problem->arrays[INPUT_V]))
        return false;
    if (tensors[INPUT_Q].shape[3] != tensors[INPUT_V].shape[3])
        return false;
    if (!grouped && tensors[INPUT_Q].shape[1] != tensors[INPUT_K].shape[1])
        return false;
    if (scaled && q->kind == ARRAY_FLOAT && q->bits == 64)
        return false;
    return !mask->owner || mask->kind == ARRAY_BOOL || same_type(mask, q) ||
           (mask->kind == ARRAY_FLOAT && mask->bits == 32);
}

static bool decodes(int64_t queries, int64_t keys)
{
    for (int i = 0; i < DECODE_RULES; i++)
        if (queries <= decode_rule[i].queries && keys >= decode_rule[i].keys)
            return true;
    return false;
}

/* torch.empty_like(query), opened. */
static bool open_output(struct result *out, const struct problem *problem, PyObject *query)
{
    const attn_tensor *q = &problem->tensors[INPUT_Q];
    PyObject *made = PyObject_CallFunctionObjArgs(empty_like, query, NULL);
    bool opened = made && result_open(out, made, "out", &problem->arrays[INPUT_Q], q->type,
                                      problem->axes, q->shape);
    Py_XDECREF(made);
    return opened;
}

/* out, or with statistics (out, stats), which decode's would not serve attn_backward as. */
static PyObject *compute(struct problem *problem, PyObject *query, bool wants_stats)
{
    const attn_tensor *inputs = problem->tensors;
    struct result out = {0}, stats = {0};
    PyObject *answer = NULL;
    if (open_output(&out, problem, query) &&
        (!wants_stats || problem_open_stats(problem, NULL, &stats))) {
        bool decode = !wants_stats && decodes(inputs[INPUT_Q].shape[2], inputs[INPUT_K].shape[2]);
        PyThreadState *thread = PyEval_SaveThread();
        attn_status status = (decode ? attn_decode : attn_forward)(
            problem_context(problem), &problem->settings.params, &inputs[INPUT_Q], &inputs[INPUT_K],
            &inputs[INPUT_V], &out.tensor, wants_stats ? &stats.tensor : NULL);
        PyEval_RestoreThread(thread);
        if (problem_succeeded(problem, status))
            answer = wants_stats ? PyTuple_Pack(2, out.object, stats.object) : result_take(&out);
    }
    result_close(&out);
    result_close(&stats);
    return answer;
}

static PyObject *if_some(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

PyObject *module_attend(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != ATTEND_COUNT) {
        PyErr_Format(PyExc_TypeError, "%d arguments are needed, %zd are given", ATTEND_COUNT,
                     count);
        return NULL;
    }
    PyObject *mask = arguments[ATTEND_MASK], *scale = arguments[ATTEND_SCALE];
    int causal = PyObject_IsTrue(arguments[ATTEND_CAUSAL]);
    int grouped = PyObject_IsTrue(arguments[ATTEND_GROUPED]);
    bool wants_stats = arguments[ATTEND_STATS] == Py_True;
    if (causal < 0 || grouped < 0)
        return NULL;
    static const char *const names[] = {"query", "key", "value", "mask"};
    if (mask != Py_None && causal)
        return Py_NewRef(Py_None);
    for (int i = ATTEND_QUERY; i <= (mask == Py_None ? ATTEND_VALUE : ATTEND_MASK); i++) {
        if (!is_tensor(arguments[i]))
            return Py_NewRef(Py_None);
        if (!array_check_sign(arguments[i], names[i]))
            return NULL;
    }

    PyObject *given[KEYWORD_COUNT] = {
        [KEYWORD_MASK] = if_some(mask),
        [KEYWORD_CAUSAL] = causal ? Py_True : NULL,
        [KEYWORD_SCALE] = if_some(scale),
        [KEYWORD_PRECISION] = bf16_name,
        [KEYWORD_THREADS] = arguments[ATTEND_THREADS],
        [KEYWORD_DETACH] = Py_True,
    };
    struct problem problem;
    if (!problem_open(&problem, arguments, INPUT_V + 1, INPUT_V + 1, given))
        return NULL;
    PyObject *answer = is_simple(&problem, grouped, scale != Py_None)
                           ? compute(&problem, arguments[ATTEND_QUERY], wants_stats)
                           : Py_NewRef(Py_None);
    problem_close(&problem);
    return answer;
}

bool tensors_add_constants(PyObject *module)
{
    PyObject *rules = PyTuple_New(DECODE_RULES);
    for (int i = 0; rules && i < DECODE_RULES; i++) {
        PyObject *rule = Py_BuildValue("(LL)", (long long)decode_rule[i].queries,
                                       (long long)decode_rule[i].keys);
        if (!rule || PyTuple_SetItem(rules, i, rule) != 0)
            Py_CLEAR(rules);
    }
    bool added = rules && PyModule_AddObjectRef(module, "DECODE_RULE", rules) == 0;
    Py_XDECREF(rules);
    return added;
}
