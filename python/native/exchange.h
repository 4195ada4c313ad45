/* exchange.h: which types have DLPack's C exchange API, and tensors of theirs that are made. */
#ifndef ATTN_PYTHON_EXCHANGE_H
#define ATTN_PYTHON_EXCHANGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <attn.h>
#include <stdbool.h>
#include <stdint.h>

#include "dlpack.h"

/* *exchange is what `type` offers, or NULL where it offers nothing that is understood. False with
 * an exception set where asking fails. */
bool exchange_of(PyTypeObject *type, const struct dlpack_exchange **exchange);

/* A new tensor of the library that `exchange` belongs to, on the CPU and packed; NULL with an
 * exception set. */
PyObject *exchange_make(const struct dlpack_exchange *exchange, attn_type type, int axes,
                        const int64_t *shape);

#endif
