#include "nn/key_value_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "kernel/kernel.h"

enum { LAYERS = 2, SEQUENCES = 3, HEADS = 2, D = 19, CAPACITY = 11, GAP = 4 };
enum { STRIDE = HEADS * D + GAP };

static const enum cache_type all_types[] = {CACHE_F32, CACHE_F16, CACHE_BF16, CACHE_I8};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static struct key_value_settings settings_of(enum cache_type type)
{
    return (struct key_value_settings){type, LAYERS, SEQUENCES, HEADS, D, CAPACITY};
}

static struct key_value_cache make_cache(enum cache_type type)
{
    const struct key_value_settings settings = settings_of(type);
    struct key_value_cache cache;
    struct attn_error error;
    if (!key_value_cache_create(&cache, &settings, &error))
        fail_msg("%s", error.message);
    return cache;
}

static void test_names(void **state)
{
    (void)state;
    for (int n = 0; n < TYPES; n++) {
        enum cache_type type;
        assert_true(cache_type_from_name(cache_type_name(all_types[n]), &type));
        assert_int_equal(type, all_types[n]);
    }
    enum cache_type type;
    assert_true(cache_type_from_name("int8", &type));
    assert_int_equal(type, CACHE_I8);
    assert_false(cache_type_from_name("f8", &type));
    assert_false(cache_type_from_name("", &type));
}

/* Element c of head h of token t, of keys or values. */
static float element(const struct compute *compute, const attn_tensor *view,
                     const attn_tensor *scales, int64_t b, int64_t h, int64_t t, int64_t c)
{
    static const enum attn_storage storages[] = {[ATTN_F32] = ATTN_STORAGE_F32,
                                                 [ATTN_F16] = ATTN_STORAGE_F16,
                                                 [ATTN_BF16] = ATTN_STORAGE_BF16,
                                                 [ATTN_I8] = ATTN_STORAGE_I8};
    const int64_t size = view->type == ATTN_F32 ? 4 : view->type == ATTN_I8 ? 1 : 2;
    const int64_t place =
        b * view->stride[0] + h * view->stride[1] + t * view->stride[2] + c * view->stride[3];
    float scale = 1.0f, value;
    if (view->type == ATTN_I8)
        scale = ((const float *)scales
                     ->data)[b * scales->stride[0] + h * scales->stride[1] + t * scales->stride[2]];
    compute->kernels->widen(storages[view->type], (const char *)view->data + place * size, scale, 1,
                            &value);
    return value;
}

static float key_number(int64_t layer, int64_t sequence, int64_t token, int64_t column)
{
    return 3.0f * sinf((float)(((layer * 5 + sequence) * 97 + token) * 61 + column) * 0.7f);
}

/* Half of the last place that the type keeps. */
static float rounding_of(enum cache_type type, float x, float largest)
{
    switch (type) {
    case CACHE_F16:
        return fabsf(x) * 0x1p-11f + 0x1p-25f;
    case CACHE_BF16:
        return fabsf(x) * 0x1p-8f;
    case CACHE_I8:
        return largest / 127.0f * 0.5001f;
    default:
        return 0.0f;
    }
}

/* Tokens first..first+tokens−1 of a sequence, in all layers; values are the keys' negatives + 1. */
static void store(const struct compute *compute, struct key_value_cache *cache, int64_t sequence,
                  int64_t first, int64_t tokens)
{
    float k[CAPACITY * STRIDE] = {0}, v[CAPACITY * STRIDE] = {0};
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t c = 0; c < STRIDE; c++) {
                const float x = c < HEADS * D ? key_number(layer, sequence, first + t, c) : NAN;
                k[t * STRIDE + c] = x;
                v[t * STRIDE + c] = 1.0f - x;
            }
        key_value_cache_store(compute, cache, layer, sequence, first, tokens, k, v, STRIDE);
    }
}

static void check_row(const struct compute *compute, const struct key_value_cache *cache,
                      int64_t layer, int64_t sequence, int64_t h, int64_t t)
{
    /* As one of the views of two sequences, so that strides count. */
    const int64_t first = sequence == 0 ? 0 : sequence - 1;
    const struct key_value_views views = key_value_cache_views(cache, layer, first, 2, CAPACITY);
    float largest_k = 0.0f, largest_v = 0.0f;
    for (int64_t c = 0; c < D; c++) {
        const float x = key_number(layer, sequence, t, h * D + c);
        largest_k = fmaxf(largest_k, fabsf(x));
        largest_v = fmaxf(largest_v, fabsf(1.0f - x));
    }
    for (int64_t c = 0; c < D; c++) {
        const float x = key_number(layer, sequence, t, h * D + c), y = 1.0f - x;
        const enum cache_type type = cache->settings.type;
        const float k = element(compute, &views.k, &views.key_scales, sequence - first, h, t, c);
        const float v = element(compute, &views.v, &views.value_scales, sequence - first, h, t, c);
        if (!(fabsf(k - x) <= rounding_of(type, x, largest_k)) ||
            !(fabsf(v - y) <= rounding_of(type, y, largest_v)))
            fail_msg("%s: layer %d, sequence %d, head %d, token %d, element %d: %.9g and %.9g, "
                     "expected %.9g and %.9g",
                     cache_type_name(type), (int)layer, (int)sequence, (int)h, (int)t, (int)c,
                     (double)k, (double)v, (double)x, (double)y);
    }
}

static void stores(const struct compute *compute)
{
    for (int n = 0; n < TYPES; n++) {
        struct key_value_cache cache = make_cache(all_types[n]);
        /* In parts, and the sequences in any order: none overwrites another. */
        store(compute, &cache, 2, 0, 5);
        store(compute, &cache, 0, 0, CAPACITY);
        store(compute, &cache, 1, 0, 1);
        store(compute, &cache, 2, 5, CAPACITY - 5);
        store(compute, &cache, 1, 1, CAPACITY - 1);
        store(compute, &cache, 1, 4, 0);
        for (int64_t layer = 0; layer < LAYERS; layer++)
            for (int64_t s = 0; s < SEQUENCES; s++)
                for (int64_t h = 0; h < HEADS; h++)
                    for (int64_t t = 0; t < CAPACITY; t++)
                        check_row(compute, &cache, layer, s, h, t);
        for (int64_t s = 0; s < SEQUENCES; s++)
            assert_int_equal(cache.lengths[s], 0);
        key_value_cache_release(&cache);
    }
}

static void test_store_and_view(void **state)
{
    (void)state;
    each_isa(1, stores);
}

/* The largest number of a row keeps its place exactly, half way goes to the even neighbour, and
 * rows that have no scale. */
static void test_int8_rows(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    const struct key_value_settings settings = {CACHE_I8, 1, 1, 1, 4, 8};
    struct key_value_cache cache;
    struct attn_error error;
    assert_true(key_value_cache_create(&cache, &settings, &error));
    const float rows[][4] = {
        {-254.0f, 1.0f, 3.0f, -5.0f}, {0.0f, -0.0f, 0.0f, 0.0f},    {1e-42f, 0.0f, -1e-41f, 1e-40f},
        {1.0f, NAN, 2.0f, 3.0f},      {1.0f, 2.0f, INFINITY, 3.0f}, {3e38f, -3e38f, 1e38f, 0.0f},
    };
    const int8_t expected[][4] = {{-127, 0, 2, -2}, {0}, {0}, {0}, {0}, {127, -127, 42, 0}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    key_value_cache_store(&compute, &cache, 0, 0, 0, ROWS, rows[0], rows[0], 4);
    assert_memory_equal(cache.keys, expected, sizeof expected);
    assert_memory_equal(cache.values, expected, sizeof expected);
    assert_true(cache.key_scales[0] == 2.0f);
    assert_true(cache.key_scales[1] == 0.0f && cache.key_scales[2] == 0.0f);
    assert_true(isnan(cache.key_scales[3]) && isnan(cache.value_scales[4]));
    assert_true(cache.value_scales[5] == 3e38f / 127.0f);
    key_value_cache_release(&cache);
    compute_destroy(&compute);
}

static void test_sizes(void **state)
{
    (void)state;
    /* 30 layers, 3 heads of 64, 8192 tokens: keys and values. */
    struct key_value_settings settings = {CACHE_F16, 30, 1, 3, 64, 8192};
    const int64_t rows = 2 * 30 * 3 * 8192, slack = 64 * 5;
    int64_t bytes;
    assert_true(key_value_cache_bytes(&settings, &bytes));
    assert_true(bytes >= rows * 64 * 2 && bytes <= rows * 64 * 2 + slack);
    settings.type = CACHE_I8;
    assert_true(key_value_cache_bytes(&settings, &bytes));
    assert_true(bytes >= rows * (64 + 4) && bytes <= rows * (64 + 4) + slack);
    settings.capacity = INT64_MAX / 1000;
    assert_false(key_value_cache_bytes(&settings, &bytes));
    settings.capacity = INT64_MAX;
    assert_false(key_value_cache_bytes(&settings, &bytes));
}

static void test_too_little_memory(void **state)
{
    (void)state;
    struct key_value_settings settings = {CACHE_F32, 100, 100, 100, 128, INT64_C(1) << 20};
    struct key_value_cache cache;
    struct attn_error error;
    assert_false(key_value_cache_create(&cache, &settings, &error));
    assert_message(&error, "the cache of 1048576 tokens takes 1000000.0 GiB, ");
    assert_message(&error, " are available");
    key_value_cache_release(&cache);
    settings.capacity = INT64_MAX;
    assert_false(key_value_cache_create(&cache, &settings, &error));
    assert_message(&error, "the cache of 9223372036854775807 tokens takes ");
}

static bool create(void *user, struct attn_error *error)
{
    (void)user;
    const struct key_value_settings settings = settings_of(CACHE_I8);
    struct key_value_cache cache;
    if (!key_value_cache_create(&cache, &settings, error))
        return false;
    key_value_cache_release(&cache);
    return true;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_int_equal(allocation_sweep(create, NULL), 1);
}

static void bits_of_cache(const struct compute *compute, float *result)
{
    const struct key_value_settings settings = {CACHE_I8, 1, 1, 4, 64, 500};
    struct key_value_cache cache;
    struct attn_error error;
    assert_true(key_value_cache_create(&cache, &settings, &error));
    float *k = malloc(500 * 256 * sizeof *k);
    assert_non_null(k);
    for (int n = 0; n < 500 * 256; n++)
        k[n] = sinf((float)n);
    key_value_cache_store(compute, &cache, 0, 0, 0, 500, k, k, 256);
    memcpy(result, cache.keys, 500 * 256);
    memcpy(result + 500 * 64, cache.value_scales, 500 * 4 * sizeof *result);
    free(k);
    key_value_cache_release(&cache);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    each_thread_count(500 * 68, bits_of_cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_store_and_view),
        cmocka_unit_test(test_int8_rows),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
