#include "nn/key_value_cache.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/available_memory.h"
#include "base/checked.h"
#include "base/memory.h"
#include "kernel/kernel.h"
#include "nn/row_blocks.h"

static const struct {
    const char *name;
    enum attn_storage storage;
    attn_type type;
    int64_t size; /* of an element */
} types[] = {
    [CACHE_F32] = {"f32", ATTN_STORAGE_F32, ATTN_F32, 4},
    [CACHE_F16] = {"f16", ATTN_STORAGE_F16, ATTN_F16, 2},
    [CACHE_BF16] = {"bf16", ATTN_STORAGE_BF16, ATTN_BF16, 2},
    [CACHE_I8] = {"int8", ATTN_STORAGE_I8, ATTN_I8, 1},
};

bool cache_type_from_name(const char *name, enum cache_type *type)
{
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (strcmp(name, types[n].name) == 0) {
            *type = (enum cache_type)n;
            return true;
        }
    return false;
}

const char *cache_type_name(enum cache_type type)
{
    return types[type].name;
}

/* Bytes for which nobody asks the machine first. */
enum { SMALL_CACHE = 1 << 20 };

/* Where the parts of a cache begin in its memory, each on a cache line of its own. */
struct cache_layout {
    int64_t keys, values, key_scales, value_scales, lengths, bytes;
};

/* `count` elements behind what is laid out so far; false where that does not fit. */
static bool add_part(struct cache_layout *layout, int64_t count, int64_t size, int64_t *begin)
{
    const int64_t line = ATTN_ALIGNMENT;
    int64_t bytes;
    *begin = layout->bytes;
    if (!attn_checked_multiply(count, size, &bytes) || !attn_checked_add(bytes, line - 1, &bytes) ||
        !attn_checked_add(layout->bytes, bytes - bytes % line, &layout->bytes))
        return false;
    return true;
}

static bool lay_out(const struct key_value_settings *settings, struct cache_layout *layout)
{
    const int64_t size = types[settings->type].size;
    int64_t rows, numbers;
    *layout = (struct cache_layout){0};
    if (!attn_checked_multiply(settings->layers, settings->sequences, &rows) ||
        !attn_checked_multiply(rows, settings->heads, &rows) ||
        !attn_checked_multiply(rows, settings->capacity, &rows) ||
        !attn_checked_multiply(rows, settings->d, &numbers))
        return false;
    const int64_t scales = settings->type == CACHE_I8 ? rows : 0, scale = (int64_t)sizeof(float);
    return add_part(layout, numbers, size, &layout->keys) &&
           add_part(layout, numbers, size, &layout->values) &&
           add_part(layout, scales, scale, &layout->key_scales) &&
           add_part(layout, scales, scale, &layout->value_scales) &&
           add_part(layout, settings->sequences, (int64_t)sizeof(int64_t), &layout->lengths);
}

bool key_value_cache_bytes(const struct key_value_settings *settings, int64_t *bytes)
{
    struct cache_layout layout;
    if (!lay_out(settings, &layout))
        return false;
    *bytes = layout.bytes;
    return true;
}

static bool refuse_size(const struct key_value_settings *settings, double bytes, double available,
                        struct attn_error *error)
{
    const double gibibyte = 1024.0 * 1024.0 * 1024.0;
    return attn_error_set(error,
                          "the cache of %" PRId64 " tokens takes %.1f GiB, %.1f GiB are available: "
                          "fewer tokens or a smaller type than %s take less",
                          settings->capacity, bytes / gibibyte, available / gibibyte,
                          cache_type_name(settings->type));
}

bool key_value_cache_create(struct key_value_cache *cache,
                            const struct key_value_settings *settings, struct attn_error *error)
{
    *cache = (struct key_value_cache){.settings = *settings};
    struct cache_layout layout;
    const bool laid_out = lay_out(settings, &layout);
    const int64_t available =
        laid_out && layout.bytes <= SMALL_CACHE ? INT64_MAX : attn_available_memory("");
    if (!laid_out || layout.bytes > INT64_MAX - ATTN_ALIGNMENT ||
        (uint64_t)layout.bytes + ATTN_ALIGNMENT > SIZE_MAX || layout.bytes > available) {
        const double rows = 2.0 * (double)settings->layers * (double)settings->sequences *
                            (double)settings->heads * (double)settings->capacity;
        const double size = (double)types[settings->type].size;
        return refuse_size(settings, rows * (double)settings->d * size, (double)available, error);
    }
    /* calloc takes fresh pages from the system for a large block, and those come when touched. */
    cache->memory = calloc(1, (size_t)layout.bytes + ATTN_ALIGNMENT);
    if (!cache->memory)
        return attn_error_memory(error);
    char *begin = cache->memory;
    begin += ATTN_ALIGNMENT - (uintptr_t)begin % ATTN_ALIGNMENT;
    const bool scaled = settings->type == CACHE_I8;
    cache->keys = begin + layout.keys;
    cache->values = begin + layout.values;
    cache->key_scales = scaled ? (float *)(void *)(begin + layout.key_scales) : NULL;
    cache->value_scales = scaled ? (float *)(void *)(begin + layout.value_scales) : NULL;
    cache->lengths = (int64_t *)(void *)(begin + layout.lengths);
    return true;
}

void key_value_cache_release(struct key_value_cache *cache)
{
    free(cache->memory);
    *cache = (struct key_value_cache){0};
}

/* The row of a sequence's first token, counted over all layers. */
static int64_t first_row(const struct key_value_cache *cache, int64_t layer, int64_t sequence,
                         int64_t head)
{
    const struct key_value_settings *settings = &cache->settings;
    return ((layer * settings->sequences + sequence) * settings->heads + head) * settings->capacity;
}

/* The largest |x|, as bits: those of NaN and Inf are larger than those of any number. */
static float largest_magnitude(const float *x, int64_t count)
{
    int32_t largest = 0;
    for (int64_t c = 0; c < count; c++) {
        int32_t bits;
        memcpy(&bits, &x[c], sizeof bits);
        bits &= INT32_MAX;
        largest = largest < bits ? bits : largest;
    }
    float magnitude;
    memcpy(&magnitude, &largest, sizeof magnitude);
    return magnitude;
}

/* One row to int8; returns its scale. A row with NaN or Inf keeps none of its numbers: its scale is
 * NaN, and so is all that is computed with it. One of numbers so small that their scale would not
 * be a normal number becomes 0. */
static float round_row(const float *restrict x, int64_t count, int8_t *restrict y)
{
    const float scale = largest_magnitude(x, count) / 127.0f;
    if (!(scale >= FLT_MIN && scale <= FLT_MAX)) {
        for (int64_t c = 0; c < count; c++)
            y[c] = 0;
        return scale < FLT_MIN ? 0.0f : NAN;
    }
    /* Adding 1.5·2²³ rounds to nearest even: what follows the point has no place left. */
    const float inverse = 1.0f / scale, rounding = 0x1.8p23f;
    for (int64_t c = 0; c < count; c++)
        y[c] = (int8_t)(int32_t)(x[c] * inverse + rounding - rounding);
    return scale;
}

struct store_work {
    const struct compute *compute;
    const struct key_value_cache *cache;
    int64_t layer, sequence, first;
    const float *k, *v;
    int64_t stride;
};

/* One token's row of keys or values. */
static void store_row(const struct store_work *work, const float *x, int64_t row, void *rows,
                      float *scales)
{
    const struct key_value_settings *settings = &work->cache->settings;
    char *y = (char *)rows + row * settings->d * types[settings->type].size;
    if (settings->type == CACHE_I8)
        scales[row] = round_row(x, settings->d, (int8_t *)y);
    else
        work->compute->kernels->narrow(types[settings->type].storage, x, settings->d, y);
}

static void store_tokens(const void *user, int64_t begin, int64_t count)
{
    const struct store_work *work = user;
    const struct key_value_cache *cache = work->cache;
    const int64_t d = cache->settings.d;
    for (int64_t head = 0; head < cache->settings.heads; head++) {
        const int64_t row = first_row(cache, work->layer, work->sequence, head) + work->first;
        for (int64_t t = begin; t < begin + count; t++) {
            const int64_t place = t * work->stride + head * d;
            store_row(work, work->k + place, row + t, cache->keys, cache->key_scales);
            store_row(work, work->v + place, row + t, cache->values, cache->value_scales);
        }
    }
}

void key_value_cache_store(const struct compute *compute, struct key_value_cache *cache,
                           int64_t layer, int64_t sequence, int64_t first, int64_t tokens,
                           const float *k, const float *v, int64_t stride)
{
    const struct store_work work = {compute, cache, layer, sequence, first, k, v, stride};
    row_blocks_for(compute, tokens, 2 * cache->settings.heads * cache->settings.d, store_tokens,
                   &work);
}

static attn_tensor view(const struct key_value_cache *cache, void *data, attn_type type,
                        int64_t count, int64_t length, int64_t d)
{
    const struct key_value_settings *settings = &cache->settings;
    const int64_t head = settings->capacity * d;
    return (attn_tensor){
        .data = data,
        .type = type,
        .shape = {count, settings->heads, length, d},
        .stride = {settings->heads * head, head, d, 1},
    };
}

struct key_value_views key_value_cache_views(const struct key_value_cache *cache, int64_t layer,
                                             int64_t first, int64_t count, int64_t length)
{
    const struct key_value_settings *settings = &cache->settings;
    const int64_t row = first_row(cache, layer, first, 0);
    const int64_t bytes = row * settings->d * types[settings->type].size;
    const attn_type type = types[settings->type].type;
    struct key_value_views views = {
        .k = view(cache, (char *)cache->keys + bytes, type, count, length, settings->d),
        .v = view(cache, (char *)cache->values + bytes, type, count, length, settings->d),
    };
    if (settings->type == CACHE_I8) {
        views.key_scales = view(cache, cache->key_scales + row, ATTN_F32, count, length, 1);
        views.value_scales = view(cache, cache->value_scales + row, ATTN_F32, count, length, 1);
    }
    return views;
}
