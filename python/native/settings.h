/* settings.h: what the keyword arguments of a call say, as libattn takes it. */
#ifndef ATTN_PYTHON_SETTINGS_H
#define ATTN_PYTHON_SETTINGS_H

#include <attn.h>
#include <stdbool.h>

#include "array.h"
#include "keywords.h"

struct settings {
    attn_params params; /* points into this struct */
    int threads;        /* 0: the default */
    bool detach;        /* arrays that ask for a gradient are taken all the same */

    struct array mask;
    attn_tensor mask_tensor;
    float *sinks, *alibi_slopes; /* [heads] */
    int64_t *key_lengths;        /* [batch] */
};

/* Reads the settings of a problem with so many batches and heads. On failure an exception is set,
 * and nothing is to be closed. */
bool settings_read(struct settings *settings, PyObject *const given[KEYWORD_COUNT], int64_t batch,
                   int64_t heads);

/* A Python integer within ±ATTN_POSITION_LIMIT, and a truth value, as 0 or 1. An exception names
 * the argument. */
bool settings_read_integer(PyObject *object, const char *name, int64_t *value);
bool settings_read_truth(PyObject *object, const char *name, int *truth);

/* 0..4096; 0 is the default. */
bool settings_read_threads(PyObject *object, int *threads);

void settings_close(struct settings *settings);

/* ValueError for a tensor that requires a gradient, which no result here would carry on and no
 * output would take, and for a negated view; with `detach` the caller has seen to both. NULL, which
 * the caller did not give, is allowed. */
bool settings_check_tensor(const struct settings *settings, PyObject *object, const char *name);

#endif
