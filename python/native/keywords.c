#include "keywords.h"

#include <string.h>

static const char *const spelled[KEYWORD_COUNT] = {
    [KEYWORD_MASK] = "mask",
    [KEYWORD_CAUSAL] = "causal",
    [KEYWORD_ALIGN] = "align",
    [KEYWORD_WINDOW] = "window",
    [KEYWORD_SCALE] = "scale",
    [KEYWORD_SOFT_CAP] = "soft_cap",
    [KEYWORD_SINKS] = "sinks",
    [KEYWORD_ALIBI_SLOPES] = "alibi_slopes",
    [KEYWORD_KEY_LENGTHS] = "key_lengths",
    [KEYWORD_PRECISION] = "precision",
    [KEYWORD_DROPOUT] = "dropout",
    [KEYWORD_DROPOUT_SEED] = "dropout_seed",
    [KEYWORD_THREADS] = "threads",
    [KEYWORD_DETACH] = "detach",
    [KEYWORD_OUT] = "out",
    [KEYWORD_STATS] = "stats",
    [KEYWORD_D_Q] = "d_q",
    [KEYWORD_D_K] = "d_k",
    [KEYWORD_D_V] = "d_v",
    [KEYWORD_D_MASK] = "d_mask",
    [KEYWORD_D_SINKS] = "d_sinks",
    [KEYWORD_TOP] = "top",
    [KEYWORD_ENTROPY] = "entropy",
    [KEYWORD_MAXIMUM] = "maximum",
    [KEYWORD_RECEIVED] = "received",
};

static PyObject *interned[KEYWORD_COUNT];

bool keywords_prepare(void)
{
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (!interned[i] && !(interned[i] = PyUnicode_InternFromString(spelled[i])))
            return false;
    return true;
}

/* Names in a program's text are interned, so that the first loop finds them. */
static int find(PyObject *name)
{
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (name == interned[i])
            return i;
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (PyUnicode_CompareWithASCIIString(name, spelled[i]) == 0)
            return i;
    return KEYWORD_COUNT;
}

bool keywords_read(PyObject *given[KEYWORD_COUNT], uint32_t further, PyObject *const *values,
                   PyObject *names)
{
    memset(given, 0, KEYWORD_COUNT * sizeof *given);
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int keyword = find(name);
        if (keyword == KEYWORD_COUNT ||
            (keyword >= KEYWORD_SETTINGS_END && !(further & KEYWORD_BIT(keyword)))) {
            PyErr_Format(PyExc_TypeError, "there is no argument %R", name);
            return false;
        }
        given[keyword] = values[i] == Py_None ? NULL : values[i];
    }
    return true;
}
