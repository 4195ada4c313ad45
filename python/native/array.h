/* array.h: an object of Python seen as an array, without a copy. */
#ifndef ATTN_PYTHON_ARRAY_H
#define ATTN_PYTHON_ARRAY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <attn.h>
#include <stdbool.h>
#include <stdint.h>

#include "dlpack.h"

enum { ARRAY_MAX_AXES = 4 };

enum array_kind {
    ARRAY_FLOAT, /* of 16, 32 or 64 bits */
    ARRAY_BFLOAT,
    ARRAY_BOOL,
    ARRAY_SIGNED,
    ARRAY_UNSIGNED
};

/* Zeroed, it is an array that is not open. */
struct array {
    const char *name; /* what the caller calls it, for messages */
    void *data;
    enum array_kind kind;
    int bits;
    int axes;
    int64_t shape[ARRAY_MAX_AXES],
        stride[ARRAY_MAX_AXES]; /* of the axes that it has, in elements */
    bool writable;
    const struct dlpack_exchange *exchange; /* of the object's type, or NULL */

    /* What array_close gives back. */
    PyObject *owner;
    Py_buffer buffer;
    bool has_buffer;
    struct dlpack_managed *managed;
    struct dlpack_managed_old *managed_old;
};

/* Opens `object`, which has DLPack's C exchange API, the buffer protocol or __dlpack__ (the first
 * of these). Also ends in an exception and false: an object that has none of them, more than four
 * axes, memory that is not the CPU's, an element type that is none of the above or of another byte
 * order, strides that are not whole elements, elements that are not aligned. */
bool array_open(struct array *array, PyObject *object, const char *name);

/* The same for one that is written into: read-only memory is a ValueError. */
bool array_open_output(struct array *array, PyObject *object, const char *name);

/* Whether the numbers of `object` are those in its memory: PyTorch negates some views only when
 * they are read, and DLPack does not know that. ValueError where not. What came by a capsule has
 * been asked already. */
bool array_check_sign(PyObject *object, const char *name);

/* Whether the object is still where it was. Memory that is lent for the call (dlpack.h) may move by
 * Python code that runs when another argument is read: looked at once more when all are read, it
 * stays. ValueError where it moved. */
bool array_check_place(const struct array *array);

/* Gives the object back; a zeroed array is allowed. */
void array_close(struct array *array);

/* The array as a tensor whose last axes are the array's, those before of length 1. TypeError for
 * integers. */
bool array_tensor(const struct array *array, attn_tensor *tensor);

#endif
