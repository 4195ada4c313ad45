/* results.h: arrays that are made for results. */
#ifndef ATTN_PYTHON_RESULTS_H
#define ATTN_PYTHON_RESULTS_H

#include <attn.h>
#include <stdbool.h>

#include "array.h"

/* Finds NumPy; once. */
bool results_prepare(void);

/* A result: opened, and the object that is returned. */
struct result {
    struct array array;
    attn_tensor tensor;
    PyObject *object;
};

/* Opens `object`, which the caller gave to be written into, or makes one of q's library where that
 * is NULL. It has the last `axes` axes of `shape`, and for libattn four: those before must be 1. */
bool result_open(struct result *result, PyObject *object, const char *name, const struct array *q,
                 attn_type type, int axes, const int64_t shape[ARRAY_MAX_AXES]);

/* Gives back the array, and the object too. */
void result_close(struct result *result);

/* The object, which becomes the caller's; result_close comes after. */
PyObject *result_take(struct result *result);

#endif
