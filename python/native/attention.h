/* attention.h: forward, decode and backward, as functions of the module. */
#ifndef ATTN_PYTHON_ATTENTION_H
#define ATTN_PYTHON_ATTENTION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The calling convention is METH_FASTCALL | METH_KEYWORDS; _native.pyi has the arguments. */
PyObject *module_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *names);
PyObject *module_decode(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *names);
PyObject *module_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *names);

#endif
