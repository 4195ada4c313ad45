/* tensors.h: attention of PyTorch's tensors in one call, for calls that nobody watches. */
#ifndef ATTN_PYTHON_TENSORS_H
#define ATTN_PYTHON_TENSORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* The calling convention is METH_FASTCALL; _native.pyi has the arguments. */
PyObject *module_know_tensors(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *module_attend(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* Adds DECODE_RULE to the module. */
bool tensors_add_constants(PyObject *module);

#endif
