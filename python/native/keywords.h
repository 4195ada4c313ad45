/* keywords.h: the keyword arguments of all functions of the module, by name. */
#ifndef ATTN_PYTHON_KEYWORDS_H
#define ATTN_PYTHON_KEYWORDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum keyword {
    /* settings, of every call */
    KEYWORD_MASK,
    KEYWORD_CAUSAL,
    KEYWORD_ALIGN,
    KEYWORD_WINDOW,
    KEYWORD_SCALE,
    KEYWORD_SOFT_CAP,
    KEYWORD_SINKS,
    KEYWORD_ALIBI_SLOPES,
    KEYWORD_KEY_LENGTHS,
    KEYWORD_PRECISION,
    KEYWORD_DROPOUT,
    KEYWORD_DROPOUT_SEED,
    KEYWORD_THREADS,
    KEYWORD_DETACH,
    KEYWORD_SETTINGS_END,
    /* results */
    KEYWORD_OUT = KEYWORD_SETTINGS_END,
    KEYWORD_STATS,
    KEYWORD_D_Q,
    KEYWORD_D_K,
    KEYWORD_D_V,
    KEYWORD_D_MASK,
    KEYWORD_D_SINKS,
    KEYWORD_TOP,
    KEYWORD_ENTROPY,
    KEYWORD_MAXIMUM,
    KEYWORD_RECEIVED,
    KEYWORD_COUNT
};

/* The set that has one keyword; those of settings are always taken. */
#define KEYWORD_BIT(keyword) (UINT32_C(1) << (keyword))

/* Makes the names; once, before all else. */
bool keywords_prepare(void);

/* given[keyword] is what a call passed for it: a borrowed reference, NULL where it passed nothing
 * or None. TypeError for a keyword that is none of the settings nor in the set `further`. */
bool keywords_read(PyObject *given[KEYWORD_COUNT], uint32_t further, PyObject *const *values,
                   PyObject *names);

#endif
