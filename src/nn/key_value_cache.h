/* Keys and values of the tokens that a model has read, for the attention of those that follow. */
#ifndef ATTN_NN_KEY_VALUE_CACHE_H
#define ATTN_NN_KEY_VALUE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "nn/compute.h"

enum cache_type { CACHE_F32, CACHE_F16, CACHE_BF16, CACHE_I8 /* a scale a row */ };

/* "f32", "f16", "bf16", "int8"; false for another name. */
bool cache_type_from_name(const char *name, enum cache_type *type);
const char *cache_type_name(enum cache_type type);

struct key_value_settings {
    enum cache_type type;
    int64_t layers;
    int64_t sequences; /* that are read side by side, each with a cache of its own */
    int64_t heads;     /* of keys and values */
    int64_t d;
    int64_t capacity; /* tokens a sequence */
};

struct key_value_cache {
    struct key_value_settings settings;
    int64_t *lengths; /* [sequences]: tokens that are in; the owner moves them when all layers have
                         written theirs */
    void *keys, *values; /* [layers][sequences][heads][capacity][d] */
    float *key_scales,
        *value_scales; /* CACHE_I8: [layers][sequences][heads][capacity], else NULL */
    void *memory;      /* all of these */
};

/* Bytes that a cache of these settings takes; false where that does not fit an int64_t. */
bool key_value_cache_bytes(const struct key_value_settings *settings, int64_t *bytes);

/* Fails before anything is computed where the machine (or its control group) has less memory
 * available than the cache takes: "the cache of N tokens takes 5.2 GiB, 3.1 GiB are available:
 * …". Memory is touched only as tokens come in. */
bool key_value_cache_create(struct key_value_cache *cache,
                            const struct key_value_settings *settings, struct attn_error *error);
void key_value_cache_release(struct key_value_cache *cache);

/* Writes `tokens` rows of k and v, [tokens][heads·d] with `stride` elements a token, to places
 * first.. of a sequence in a layer; first + tokens ≤ capacity. f16 and bf16 are rounded to nearest
 * even; int8 has scale = max|x|/127 a row of d, and rounds to nearest; a row with NaN or Inf has
 * the scale NaN, so that what is computed with it is NaN. */
void key_value_cache_store(const struct compute *compute, struct key_value_cache *cache,
                           int64_t layer, int64_t sequence, int64_t first, int64_t tokens,
                           const float *k, const float *v, int64_t stride);

/* Views of a layer for libattn: k, v [count][heads][length][d] and, with CACHE_I8, their scales
 * [count][heads][length][1], of sequences first..first+count−1. */
struct key_value_views {
    attn_tensor k, v, key_scales, value_scales;
};
struct key_value_views key_value_cache_views(const struct key_value_cache *cache, int64_t layer,
                                             int64_t first, int64_t count, int64_t length);

#endif
