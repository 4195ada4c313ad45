/* numbers.h: numbers of one axis that a setting has for each head or batch, copied. */
#ifndef ATTN_PYTHON_NUMBERS_H
#define ATTN_PYTHON_NUMBERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* An array of `heads` floating numbers, as floats; NULL with an exception set. */
float *numbers_floats(PyObject *object, const char *name, int64_t heads);

/* A list, a tuple or an array of `batch` integers; NULL with an exception set. */
int64_t *numbers_lengths(PyObject *object, int64_t batch);

/* ValueError for a finite number that float32 has only infinity for. */
bool numbers_round(double number, const char *name, float *rounded);

#endif
