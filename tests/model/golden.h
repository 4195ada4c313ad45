/* What PyTorch computed with the default model: tests/data/golden/bert.{json,bin}, made by
 * scripts/golden_bert.py. */
#ifndef ATTN_TESTS_GOLDEN_H
#define ATTN_TESTS_GOLDEN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "model/bert.h"

struct golden {
    json_t *file;
    float *numbers; /* bert.bin */
    size_t count;
    int64_t hidden, layers, heads;
    size_t texts;
};

/* One text; pointers live as long as the golden. */
struct golden_text {
    int64_t tokens;
    int32_t *ids, *types; /* [tokens], newly allocated: golden_text_free */
    const char *text;
    const char *pair;         /* NULL for none */
    const json_t *entry;      /* its "hidden" and "attention" lists */
    const float *embedding;   /* [hidden] */
    const float *square_sums; /* [layers][heads] */
};

struct golden golden_read(void);
void golden_free(struct golden *golden);

struct golden_text golden_text_at(const struct golden *golden, size_t index);
void golden_text_free(struct golden_text *text);

/* The `count` numbers that begin where an item's "begin" says. */
const float *golden_numbers(const struct golden *golden, const json_t *item, size_t count);

/* The directory of the default model, from ATTN_TEST_MODEL. NULL where it is unset or empty: then
 * all tests of the executable are reported as skipped, and its main returns 0. (A single skipped
 * test of cmocka's before 1.1.6 counts as failed.) */
const char *golden_model_directory(void);

/* The model itself; fails the test where it cannot be opened. */
struct bert *golden_open_model(void);

#endif
