/* problem.h: the arrays and settings of one call, opened, and how its outcome is told. */
#ifndef ATTN_PYTHON_PROBLEM_H
#define ATTN_PYTHON_PROBLEM_H

#include <attn.h>
#include <stdbool.h>

#include "contexts.h"
#include "results.h"
#include "settings.h"

enum problem_input { INPUT_Q, INPUT_K, INPUT_V, INPUT_OUT, INPUT_STATS, INPUT_D_OUT, INPUT_COUNT };

struct problem {
    struct settings settings;
    int axes; /* of q, and of all others */
    struct array arrays[INPUT_COUNT];
    attn_tensor tensors[INPUT_COUNT];
    struct pooled_context *context;
};

/* Opens the first `count` inputs from a call's positional arguments, which must be as many, and the
 * settings; takes a context. On failure an exception is set, and nothing is to be closed. */
bool problem_open(struct problem *problem, PyObject *const *arguments, Py_ssize_t given_count,
                  int count, PyObject *const given[KEYWORD_COUNT]);

/* One more input, with as many axes. */
bool problem_open_input(struct problem *problem, enum problem_input input, PyObject *object);

void problem_close(struct problem *problem);

/* The context, for a call. */
attn_context *problem_context(const struct problem *problem);

/* Whether all inputs and the first `count` results, of which some may be zeroed, are still where
 * they were; before a call, when no code of Python's is between. */
bool problem_check_places(const struct problem *problem, const struct result *results, int count);

/* True for a success; else an exception with libattn's message, in the words of the module. */
bool problem_succeeded(const struct problem *problem, attn_status status);

/* F64 where q is, else F32. */
attn_type problem_number_type(const struct problem *problem);

/* Opens `object` for the statistics of the rows, [B, H, Lq, 2], or makes one where that is NULL. */
bool problem_open_stats(const struct problem *problem, PyObject *object, struct result *stats);

/* The statistics, made and computed from q and k alone. */
bool problem_compute_stats(struct problem *problem, struct result *stats);

#endif
