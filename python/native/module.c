/* The module attn._native; python/attn/_native.pyi is its manual. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <attn.h>

#include "attention.h"
#include "contexts.h"
#include "inspection.h"
#include "keywords.h"
#include "results.h"
#include "settings.h"
#include "tensors.h"

static PyObject *set_threads(PyObject *module, PyObject *number)
{
    (void)module;
    int threads;
    if (!settings_read_threads(number, &threads))
        return NULL;
    contexts_set_threads(threads);
    return Py_NewRef(Py_None);
}

static PyObject *get_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int threads = contexts_threads();
    return threads < 0 ? NULL : PyLong_FromLong(threads);
}

static PyObject *share_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(contexts_share_threads());
}

static PyObject *isa(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct pooled_context *context = contexts_take(0);
    if (!context)
        return NULL;
    const char *name = attn_isa_name(attn_context_isa(contexts_inside(context)));
    contexts_give(context);
    return PyUnicode_FromString(name);
}

/* A function of METH_FASTCALL has another type than the field: CPython casts it back. */
#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"forward", FAST(module_forward), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"decode", FAST(module_decode), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"backward", FAST(module_backward), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"weights", FAST(module_weights), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"inspect", FAST(module_inspect), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"attend", FAST(module_attend), METH_FASTCALL, NULL},
    {"know_tensors", FAST(module_know_tensors), METH_FASTCALL, NULL},
    {"set_threads", set_threads, METH_O, NULL},
    {"get_threads", get_threads, METH_NOARGS, NULL},
    {"share_threads", share_threads, METH_NOARGS, NULL},
    {"isa", isa, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* NumPy's types, interned names and idle contexts are the process's. An interpreter that ends takes
 * its objects along. */
static bool is_main_interpreter(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return true;
    PyErr_SetString(PyExc_ImportError, "attn works in the main interpreter of a process only");
    return false;
}

static int execute(PyObject *module)
{
    return is_main_interpreter() && keywords_prepare() && results_prepare() &&
                   tensors_add_constants(module) &&
                   PyModule_AddStringConstant(module, "version", attn_version()) == 0
               ? 0
               : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "attn._native",
    .m_doc = "libattn's calls on arrays that others own.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
