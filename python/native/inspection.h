/* inspection.h: weights and what is told of them, as functions of the module. */
#ifndef ATTN_PYTHON_INSPECTION_H
#define ATTN_PYTHON_INSPECTION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The calling convention is METH_FASTCALL | METH_KEYWORDS; _native.pyi has the arguments. */
PyObject *module_weights(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names);
PyObject *module_inspect(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names);

#endif
