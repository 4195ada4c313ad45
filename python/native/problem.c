#include "problem.h"

#include <string.h>

static const char *const names[INPUT_COUNT] = {"q", "k", "v", "out", "stats", "d_out"};

bool problem_open_input(struct problem *problem, enum problem_input input, PyObject *object)
{
    struct array *array = &problem->arrays[input];
    if (!settings_check_tensor(&problem->settings, object, names[input]) ||
        !array_open(array, object, names[input]))
        return false;
    if (input == INPUT_Q && array->axes < 2) {
        PyErr_Format(PyExc_ValueError,
                     "q has %d axes; it must have 2 to 4: [length, dim], [heads, length, dim] or "
                     "[batch, heads, length, dim]",
                     array->axes);
        return false;
    }
    if (input == INPUT_Q)
        problem->axes = array->axes;
    if (array->axes != problem->axes) {
        PyErr_Format(PyExc_ValueError, "%s has %d axes; it must have %d, as q", names[input],
                     array->axes, problem->axes);
        return false;
    }
    return array_tensor(array, &problem->tensors[input]);
}

/* Waking a thread takes longer than this many multiply-adds, and what a row takes beside its keys
 * is as long as some. Bits do not depend on threads. */
enum { SMALL_PROBLEM = 1 << 17, ROW_WORK = 1 << 12 };

static bool is_small(const struct problem *problem)
{
    const int64_t *q = problem->tensors[INPUT_Q].shape;
    double rows = (double)q[0] * (double)q[1] * (double)q[2];
    double keys = (double)problem->tensors[INPUT_K].shape[2];
    return rows * (keys * 2 * (double)q[3] + ROW_WORK) < SMALL_PROBLEM;
}

static bool open_all(struct problem *problem, PyObject *const *arguments, int count,
                     PyObject *const given[KEYWORD_COUNT])
{
    /* Whether gradients may be lost is a setting, and must be known before the arrays are looked
     * at; the other settings depend on the shape of q. */
    int detach = 0;
    if (given[KEYWORD_DETACH] && !settings_read_truth(given[KEYWORD_DETACH], "detach", &detach))
        return false;
    problem->settings.detach = detach;
    for (int i = 0; i < count; i++)
        if (!problem_open_input(problem, (enum problem_input)i, arguments[i]))
            return false;
    const int64_t *shape = problem->tensors[INPUT_Q].shape;
    if (!settings_read(&problem->settings, given, shape[0], shape[1]))
        return false;
    problem->context = contexts_take(is_small(problem) ? 1 : problem->settings.threads);
    return problem->context;
}

bool problem_open(struct problem *problem, PyObject *const *arguments, Py_ssize_t given_count,
                  int count, PyObject *const given[KEYWORD_COUNT])
{
    *problem = (struct problem){0};
    if (given_count != count) {
        PyErr_Format(PyExc_TypeError, "%d arrays are needed, %zd are given", count, given_count);
        return false;
    }
    if (open_all(problem, arguments, count, given))
        return true;
    problem_close(problem);
    return false;
}

void problem_close(struct problem *problem)
{
    if (problem->context)
        contexts_give(problem->context);
    for (int i = 0; i < INPUT_COUNT; i++)
        array_close(&problem->arrays[i]);
    settings_close(&problem->settings);
    *problem = (struct problem){0};
}

bool problem_check_places(const struct problem *problem, const struct result *results, int count)
{
    /* Who sees to gradients passes plain tensors and numbers, which run no code of Python's. */
    if (problem->settings.detach)
        return true;
    bool placed = array_check_place(&problem->settings.mask);
    for (int i = 0; placed && i < INPUT_COUNT; i++)
        placed = array_check_place(&problem->arrays[i]);
    for (int i = 0; placed && i < count; i++)
        placed = array_check_place(&results[i].array);
    return placed;
}

attn_context *problem_context(const struct problem *problem)
{
    return contexts_inside(problem->context);
}

/* libattn names the fields of its structs and C's types; callers here know keywords, NumPy's types,
 * and nothing of the types that are not taken. */
static PyObject *message_for_python(const char *message)
{
    static const struct word {
        const char *found, *instead;
    } begins[] = {{"d_o ", "d_out "}, {"o ", "out "}, {"weights ", "out "}},
      words[] = {
          {"params.keep", "mask"},
          {"params.bias", "mask"},
          {"params.", ""},
          {"gradients.bias", "d_mask"},
          {"gradients.", "d_"},
          {"inspection.", ""},
          {" and o share", " and out share"},
          {"use attn_forward", "use attention"},
          {"attn_decode", "decode"},
          {" is NULL", " is None"},
          {", bf16 or i8", " or bf16"},
          {" bf16", " bfloat16"},
          {" f16", " float16"},
          {" f32", " float32"},
          {" f64", " float64"},
      };
    const char *begin = "";
    for (size_t i = 0; i < sizeof begins / sizeof *begins && !*begin; i++)
        if (strncmp(message, begins[i].found, strlen(begins[i].found)) == 0) {
            begin = begins[i].instead;
            message += strlen(begins[i].found);
        }
    PyObject *text = PyUnicode_FromFormat("%s%s", begin, message);
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        PyObject *replaced =
            PyObject_CallMethod(text, "replace", "ss", words[i].found, words[i].instead);
        Py_DECREF(text);
        text = replaced;
    }
    return text;
}

bool problem_succeeded(const struct problem *problem, attn_status status)
{
    if (status == ATTN_SUCCESS)
        return true;
    PyObject *kind = status == ATTN_ERROR_MEMORY ? PyExc_MemoryError
                     : status == ATTN_ERROR_TYPE ? PyExc_TypeError
                                                 : PyExc_ValueError;
    PyObject *message = message_for_python(attn_message(problem_context(problem)));
    if (message)
        PyErr_SetObject(kind, message);
    Py_XDECREF(message);
    return false;
}

attn_type problem_number_type(const struct problem *problem)
{
    return problem->tensors[INPUT_Q].type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
}

bool problem_open_stats(const struct problem *problem, PyObject *object, struct result *stats)
{
    const int64_t *q = problem->tensors[INPUT_Q].shape;
    int64_t shape[] = {q[0], q[1], q[2], 2};
    return result_open(stats, object, "stats", &problem->arrays[INPUT_Q],
                       problem_number_type(problem), problem->axes, shape);
}

bool problem_compute_stats(struct problem *problem, struct result *stats)
{
    const attn_tensor *q = &problem->tensors[INPUT_Q], *k = &problem->tensors[INPUT_K];
    if (!problem_open_stats(problem, NULL, stats))
        return false;
    /* Values without an element: statistics are written all the same. */
    attn_tensor v = *k, o = *q;
    v.data = o.data = NULL;
    v.shape[3] = o.shape[3] = 0;
    o.type = problem_number_type(problem);
    if (!problem_check_places(problem, stats, 1)) {
        result_close(stats);
        return false;
    }
    PyThreadState *thread = PyEval_SaveThread();
    attn_status status = attn_forward(problem_context(problem), &problem->settings.params, q, k, &v,
                                      &o, &stats->tensor);
    PyEval_RestoreThread(thread);
    if (problem_succeeded(problem, status))
        return true;
    result_close(stats);
    return false;
}
