#include "inspection.h"

#include <string.h>

#include "problem.h"

/* The statistics that the caller gave, or those that are computed here. */
static bool find_stats(struct problem *problem, PyObject *object, struct result *computed,
                       const attn_tensor **stats)
{
    if (!object) {
        *stats = &computed->tensor;
        return problem_compute_stats(problem, computed);
    }
    *stats = &problem->tensors[INPUT_STATS];
    return problem_open_input(problem, INPUT_STATS, object);
}

/* attn_weights would take a smaller output for a part. */
static bool is_whole(const attn_tensor *weights, const int64_t shape[4])
{
    if (memcmp(weights->shape, shape, sizeof weights->shape) == 0)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "out has shape [%lld, %lld, %lld, %lld], expected [%lld, %lld, %lld, %lld]",
                 (long long)weights->shape[0], (long long)weights->shape[1],
                 (long long)weights->shape[2], (long long)weights->shape[3], (long long)shape[0],
                 (long long)shape[1], (long long)shape[2], (long long)shape[3]);
    return false;
}

static PyObject *compute_weights(struct problem *problem, PyObject *const given[KEYWORD_COUNT])
{
    struct result computed = {0}, weights = {0};
    const attn_tensor *q = &problem->tensors[INPUT_Q], *k = &problem->tensors[INPUT_K], *stats;
    int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], k->shape[2]};
    PyObject *answer = NULL;
    if (settings_check_tensor(&problem->settings, given[KEYWORD_OUT], "out") &&
        find_stats(problem, given[KEYWORD_STATS], &computed, &stats) &&
        result_open(&weights, given[KEYWORD_OUT], "out", &problem->arrays[INPUT_Q],
                    problem_number_type(problem), problem->axes, shape) &&
        is_whole(&weights.tensor, shape) && problem_check_places(problem, &weights, 1)) {
        PyThreadState *thread = PyEval_SaveThread();
        attn_status status = attn_weights(problem_context(problem), &problem->settings.params, q, k,
                                          stats, NULL, &weights.tensor);
        PyEval_RestoreThread(thread);
        if (problem_succeeded(problem, status))
            answer = result_take(&weights);
    }
    result_close(&weights);
    result_close(&computed);
    return answer;
}

PyObject *module_weights(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names)
{
    (void)module;
    PyObject *given[KEYWORD_COUNT];
    struct problem problem;
    if (!keywords_read(given, KEYWORD_BIT(KEYWORD_OUT) | KEYWORD_BIT(KEYWORD_STATS),
                       arguments + count, names) ||
        !problem_open(&problem, arguments, count, INPUT_K + 1, given))
        return NULL;
    PyObject *answer = compute_weights(&problem, given);
    problem_close(&problem);
    return answer;
}

enum told { TOLD_WEIGHTS, TOLD_KEYS, TOLD_ENTROPY, TOLD_MAXIMUM, TOLD_RECEIVED, TOLD_COUNT };

/* What is asked for: the numbers of a row, for each thing that is told; 0 is not asked. */
static bool read_wishes(PyObject *const given[KEYWORD_COUNT], int64_t wishes[TOLD_COUNT])
{
    static const struct {
        enum keyword keyword;
        const char *name;
        enum told told;
    } flags[] = {{KEYWORD_ENTROPY, "entropy", TOLD_ENTROPY},
                 {KEYWORD_MAXIMUM, "maximum", TOLD_MAXIMUM},
                 {KEYWORD_RECEIVED, "received", TOLD_RECEIVED}};
    int64_t top = 0;
    if (given[KEYWORD_TOP] && !settings_read_integer(given[KEYWORD_TOP], "top", &top))
        return false;
    if (top < 0 || top > ATTN_TOP_LIMIT) {
        PyErr_Format(PyExc_ValueError, "top must be in 0..%d", ATTN_TOP_LIMIT);
        return false;
    }
    wishes[TOLD_WEIGHTS] = wishes[TOLD_KEYS] = top;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        PyObject *flag = given[flags[i].keyword];
        int wanted = 0;
        if (flag && !settings_read_truth(flag, flags[i].name, &wanted))
            return false;
        wishes[flags[i].told] = wanted;
    }
    return true;
}

/* Numbers of a row, and of a key, come without their last axis of length 1: the array that is made
 * has one axis less, and libattn sees it with that axis. */
static bool open_told(const struct problem *problem, enum told told, int64_t count,
                      struct result *result)
{
    static const char *const names[TOLD_COUNT] = {"top weights", "top keys", "entropy", "maximum",
                                                  "received"};
    const attn_tensor *q = &problem->tensors[INPUT_Q], *k = &problem->tensors[INPUT_K];
    attn_type type = told == TOLD_KEYS ? ATTN_I32 : problem_number_type(problem);
    const struct array *like = &problem->arrays[INPUT_Q];
    if (told == TOLD_WEIGHTS || told == TOLD_KEYS) {
        int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], count};
        return result_open(result, NULL, names[told], like, type, problem->axes, shape);
    }
    int64_t length = told == TOLD_RECEIVED ? k->shape[2] : q->shape[2];
    int64_t shape[] = {1, q->shape[0], q->shape[1], length};
    if (!result_open(result, NULL, names[told], like, type, problem->axes - 1, shape))
        return false;
    attn_tensor *tensor = &result->tensor;
    for (int i = 0; i + 1 < ARRAY_MAX_AXES; i++) {
        tensor->shape[i] = tensor->shape[i + 1];
        tensor->stride[i] = tensor->stride[i + 1];
    }
    tensor->shape[3] = 1;
    tensor->stride[3] = 0;
    return true;
}

static PyObject *tell(struct problem *problem, const attn_tensor *stats,
                      const int64_t wishes[TOLD_COUNT], struct result results[TOLD_COUNT])
{
    attn_inspection inspection;
    attn_inspection_init(&inspection);
    const attn_tensor **places[] = {&inspection.top_weights, &inspection.top_keys,
                                    &inspection.entropy, &inspection.maximum, &inspection.key_sums};
    for (int i = 0; i < TOLD_COUNT; i++) {
        if (wishes[i] == 0)
            continue;
        if (!open_told(problem, (enum told)i, wishes[i], &results[i]))
            return NULL;
        *places[i] = &results[i].tensor;
    }
    if (!problem_check_places(problem, results, TOLD_COUNT))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    attn_status status =
        attn_inspect(problem_context(problem), &problem->settings.params,
                     &problem->tensors[INPUT_Q], &problem->tensors[INPUT_K], stats, &inspection);
    PyEval_RestoreThread(thread);
    if (!problem_succeeded(problem, status))
        return NULL;
    PyObject *told[TOLD_COUNT];
    for (int i = 0; i < TOLD_COUNT; i++)
        told[i] = results[i].object ? results[i].object : Py_None;
    return PyTuple_Pack(TOLD_COUNT, told[0], told[1], told[2], told[3], told[4]);
}

PyObject *module_inspect(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names)
{
    (void)module;
    PyObject *given[KEYWORD_COUNT];
    int64_t wishes[TOLD_COUNT];
    struct problem problem;
    uint32_t further = KEYWORD_BIT(KEYWORD_STATS) | KEYWORD_BIT(KEYWORD_TOP) |
                       KEYWORD_BIT(KEYWORD_ENTROPY) | KEYWORD_BIT(KEYWORD_MAXIMUM) |
                       KEYWORD_BIT(KEYWORD_RECEIVED);
    if (!keywords_read(given, further, arguments + count, names) || !read_wishes(given, wishes) ||
        !problem_open(&problem, arguments, count, INPUT_K + 1, given))
        return NULL;
    struct result computed = {0}, results[TOLD_COUNT] = {0};
    const attn_tensor *stats;
    PyObject *answer = NULL;
    if (find_stats(&problem, given[KEYWORD_STATS], &computed, &stats))
        answer = tell(&problem, stats, wishes, results);
    for (int i = 0; i < TOLD_COUNT; i++)
        result_close(&results[i]);
    result_close(&computed);
    problem_close(&problem);
    return answer;
}
