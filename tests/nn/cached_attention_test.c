/* Attention over a cache, against its definition in double of all tokens at once. */
#include "nn/cached_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"

enum { LAYER = 1, LAYERS = 2, HEADS = 6, KEY_HEADS = 2, D = 24, CAPACITY = 160, MOST = 4 };
enum { WIDTH = HEADS * D, KEY_WIDTH = KEY_HEADS * D, STRIDE = WIDTH + 2 * KEY_WIDTH };

/* Tokens of some texts, q, k and v side by side: [texts][CAPACITY][STRIDE]. */
struct texts {
    float *projected;
    int64_t lengths[MOST];
};

static struct texts make_texts(const int64_t *lengths, int count)
{
    struct texts texts = {.projected = malloc(MOST * CAPACITY * STRIDE * sizeof(float))};
    assert_non_null(texts.projected);
    for (int n = 0; n < MOST * CAPACITY * STRIDE; n++)
        texts.projected[n] = 1.5f * (float)sin((double)n * (0.37 + 1e-4 * (n % 13)));
    memcpy(texts.lengths, lengths, (size_t)count * sizeof *lengths);
    return texts;
}

static const float *token_of(const struct texts *texts, int64_t text, int64_t token)
{
    return texts->projected + (text * CAPACITY + token) * STRIDE;
}

static double score(const struct texts *texts, int64_t text, int64_t head, int64_t i, int64_t j)
{
    const float *q = token_of(texts, text, i) + head * D;
    const float *k = token_of(texts, text, j) + WIDTH + head / (HEADS / KEY_HEADS) * D;
    double sum = 0.0;
    for (int c = 0; c < D; c++)
        sum += (double)q[c] * (double)k[c];
    return sum / sqrt(D);
}

/* weights[0..i] of token i. */
static void reference_weights(const struct texts *texts, int64_t text, int64_t head, int64_t i,
                              double *weights)
{
    double m = -INFINITY, l = 0.0;
    for (int64_t j = 0; j <= i; j++)
        m = fmax(m, weights[j] = score(texts, text, head, i, j));
    for (int64_t j = 0; j <= i; j++)
        l += weights[j] = exp(weights[j] - m);
    for (int64_t j = 0; j <= i; j++)
        weights[j] /= l;
}

static void check_token(const struct texts *texts, int64_t text, int64_t i, const float *blended,
                        double tolerance)
{
    for (int64_t head = 0; head < HEADS; head++) {
        double weights[CAPACITY];
        reference_weights(texts, text, head, i, weights);
        for (int c = 0; c < D; c++) {
            double expected = 0.0;
            for (int64_t j = 0; j <= i; j++)
                expected +=
                    weights[j] *
                    (double)token_of(texts, text,
                                     j)[WIDTH + KEY_WIDTH + head / (HEADS / KEY_HEADS) * D + c];
            if (!(fabs((double)blended[head * D + c] - expected) <= tolerance))
                fail_msg("text %d, token %d, head %d, element %d: %.9g, expected %.9g", (int)text,
                         (int)i, (int)head, c, (double)blended[head * D + c], expected);
        }
    }
}

static struct key_value_cache make_cache(enum cache_type type)
{
    const struct key_value_settings settings = {type, LAYERS, MOST, KEY_HEADS, D, CAPACITY};
    struct key_value_cache cache;
    struct attn_error error;
    if (!key_value_cache_create(&cache, &settings, &error))
        fail_msg("%s", error.message);
    return cache;
}

/* Reads counts[n] more tokens of text slots[n], for n < sequences, in one call, and moves the
 * lengths. blended[text][CAPACITY][WIDTH] takes the result. */
static void read_tokens(const struct compute *compute, struct key_value_cache *cache,
                        const struct texts *texts, int64_t sequences, const int64_t *slots,
                        const int64_t *counts, const struct attention_observer *observer,
                        float *blended)
{
    int64_t starts[MOST + 1] = {0};
    for (int64_t s = 0; s < sequences; s++)
        starts[s + 1] = starts[s] + counts[s];
    const int64_t tokens = starts[sequences];
    float *x = malloc((size_t)(tokens * STRIDE) * sizeof *x);
    float *y = malloc((size_t)(tokens * WIDTH) * sizeof *y);
    float *stats = malloc((size_t)cached_attention_stats(HEADS, tokens) * sizeof *stats);
    assert_true(x && y && stats);
    for (int64_t s = 0; s < sequences; s++)
        memcpy(x + starts[s] * STRIDE, token_of(texts, slots[s], cache->lengths[slots[s]]),
               (size_t)(counts[s] * STRIDE) * sizeof *x);
    for (int64_t n = 0; n < tokens * WIDTH; n++)
        y[n] = NAN;
    const struct cached_batch batch = {{sequences, starts}, slots};
    struct attn_error error;
    if (!cached_attention(compute, cache, LAYER, &batch, HEADS, ATTN_PRECISION_EXACT, x, STRIDE,
                          x + WIDTH, x + WIDTH + KEY_WIDTH, STRIDE, y, observer ? stats : NULL,
                          observer, NULL, &error))
        fail_msg("%s", error.message);
    for (int64_t s = 0; s < sequences; s++) {
        memcpy(blended + (slots[s] * CAPACITY + cache->lengths[slots[s]]) * WIDTH,
               y + starts[s] * WIDTH, (size_t)(counts[s] * WIDTH) * sizeof *y);
        cache->lengths[slots[s]] += counts[s];
    }
    free(x);
    free(y);
    free(stats);
}

static float *make_blended(void)
{
    float *blended = malloc(MOST * CAPACITY * WIDTH * sizeof *blended);
    assert_non_null(blended);
    for (int n = 0; n < MOST * CAPACITY * WIDTH; n++)
        blended[n] = NAN;
    return blended;
}

/* How a text of this length is read: all at once, one token after another, or in two parts. */
static void read_in_parts(const struct compute *compute, enum cache_type type,
                          const struct texts *texts, int64_t first, int64_t step, float *blended)
{
    struct key_value_cache cache = make_cache(type);
    const int64_t length = texts->lengths[0], slot = 0;
    for (int64_t part, t = 0; t < length; t += part) {
        part = t == 0 ? first : step;
        part = part < length - t ? part : length - t;
        read_tokens(compute, &cache, texts, 1, &slot, &part, NULL, blended);
    }
    key_value_cache_release(&cache);
}

/* Bounds for keys and values below 1.5 in size, measured at about half of these. */
static double bound_of(enum cache_type type)
{
    switch (type) {
    case CACHE_F16:
        return 1.5e-3;
    case CACHE_BF16:
        return 1.2e-2;
    case CACHE_I8:
        return 2e-2;
    default:
        return 1e-6;
    }
}

static void parts(const struct compute *compute)
{
    static const int64_t lengths[] = {1, 2, 97, CAPACITY};
    for (int type = CACHE_F32; type <= CACHE_I8; type++)
        for (int n = 0; n < 4; n++) {
            const struct texts texts = make_texts(&lengths[n], 1);
            const int64_t length = lengths[n];
            /* {first part, the following ones} */
            const int64_t ways[][2] = {
                {length, 1}, {1, 1}, {length / 3 + 1, length}, {length - 1, 1}, {7, 5}};
            for (int way = 0; way < 5; way++) {
                float *blended = make_blended();
                if (ways[way][0] > 0)
                    read_in_parts(compute, (enum cache_type)type, &texts, ways[way][0],
                                  ways[way][1], blended);
                for (int64_t i = 0; ways[way][0] > 0 && i < length; i++)
                    check_token(&texts, 0, i, blended + i * WIDTH, bound_of((enum cache_type)type));
                free(blended);
            }
            free(texts.projected);
        }
}

static void test_parts(void **state)
{
    (void)state;
    each_isa(1, parts);
}

/* Several texts in one call have the bits that each has alone. */
static void together(const struct compute *compute)
{
    static const int64_t lengths[MOST] = {5, 40, 3, 21};
    /* Slots and counts of each call: a prompt each, single tokens of all, of some that are no
     * neighbours, and a mixture. */
    static const struct {
        int64_t sequences, slots[MOST], counts[MOST];
    } calls[] = {
        {4, {0, 1, 2, 3}, {3, 36, 1, 17}},
        {4, {0, 1, 2, 3}, {1, 1, 1, 1}},
        {2, {1, 3}, {1, 1}},
        {2, {1, 3}, {2, 1}},
        {3, {0, 2, 3}, {1, 1, 1}},
    };
    enum { CALLS = sizeof calls / sizeof calls[0] };
    const struct texts texts = make_texts(lengths, MOST);
    for (int type = CACHE_F32; type <= CACHE_I8; type++) {
        float *blended = make_blended(), *alone = make_blended();
        struct key_value_cache all = make_cache((enum cache_type)type);
        struct key_value_cache one = make_cache((enum cache_type)type);
        for (int n = 0; n < CALLS; n++) {
            read_tokens(compute, &all, &texts, calls[n].sequences, calls[n].slots, calls[n].counts,
                        NULL, blended);
            for (int64_t s = 0; s < calls[n].sequences; s++)
                read_tokens(compute, &one, &texts, 1, &calls[n].slots[s], &calls[n].counts[s], NULL,
                            alone);
        }
        for (int64_t s = 0; s < MOST; s++) {
            assert_int_equal(all.lengths[s], lengths[s]);
            const float *rows = blended + s * CAPACITY * WIDTH;
            assert_near(rows, alone + s * CAPACITY * WIDTH, (size_t)(lengths[s] * WIDTH), 1e-6);
            for (int64_t i = 0; i < lengths[s]; i++)
                check_token(&texts, s, i, rows + i * WIDTH, bound_of((enum cache_type)type));
        }
        key_value_cache_release(&all);
        key_value_cache_release(&one);
        free(blended);
        free(alone);
    }
    free(texts.projected);
}

static void test_texts_side_by_side(void **state)
{
    (void)state;
    each_isa(1, together);
}

/* What the observer is told: weights that sum to 1, and blend values to what was computed. */
struct seen {
    const struct texts *texts;
    double tolerance;
    int64_t calls, rows;
};

static void check_weights(const struct seen *seen, const attn_tensor *weights, int64_t b,
                          int64_t old)
{
    const int64_t tokens = weights->shape[2], keys = weights->shape[3];
    for (int64_t head = 0; head < HEADS; head++)
        for (int64_t i = 0; i < tokens; i++) {
            const float *row =
                (const float *)weights->data + ((b * HEADS + head) * tokens + i) * keys;
            double expected[CAPACITY], sum = 0.0;
            reference_weights(seen->texts, b, head, old + i, expected);
            for (int64_t j = 0; j < keys; j++) {
                const double wanted = j <= old + i ? expected[j] : 0.0;
                sum += (double)row[j];
                if (!(fabs((double)row[j] - wanted) <= seen->tolerance))
                    fail_msg("text %d, head %d, token %d, key %d: weight %.9g, expected %.9g",
                             (int)b, (int)head, (int)(old + i), (int)j, (double)row[j], wanted);
            }
            assert_true(fabs(sum - 1.0) <= 3e-6);
        }
}

static bool look(void *user, const struct compute *compute, const struct attention_record *record,
                 struct attn_error *error)
{
    struct seen *seen = user;
    const int64_t sequences = record->q.shape[0], tokens = record->q.shape[2];
    const int64_t keys = record->k.shape[2];
    assert_int_equal(record->q.shape[1], HEADS);
    assert_int_equal(record->k.shape[1], KEY_HEADS);
    float *memory = malloc((size_t)(sequences * HEADS * tokens * keys) * sizeof *memory);
    assert_non_null(memory);
    attn_tensor weights = attn_tensor_packed(memory, ATTN_F32, sequences, HEADS, tokens, keys);
    if (attn_weights(compute->attention, record->params, &record->q, &record->k, &record->stats,
                     NULL, &weights))
        fail_msg("%s", attn_message(compute->attention));
    for (int64_t b = 0; b < sequences; b++) {
        const int64_t all = record->params->key_lengths ? record->params->key_lengths[b] : keys;
        check_weights(seen, &weights, b, all - tokens);
    }
    free(memory);
    seen->calls++;
    seen->rows += sequences * tokens;
    (void)error;
    return true;
}

static void observers(const struct compute *compute)
{
    static const int64_t lengths[MOST] = {30, 30, 30, 30}, slots[] = {0, 1}, prompt[] = {20, 11};
    static const int64_t next[] = {1, 1};
    const struct texts texts = make_texts(lengths, MOST);
    for (int type = CACHE_F32; type <= CACHE_I8; type++) {
        struct key_value_cache cache = make_cache((enum cache_type)type);
        struct seen seen = {.texts = &texts, .tolerance = bound_of((enum cache_type)type)};
        const struct attention_observer observer = {look, &seen, NULL};
        float *blended = make_blended();
        /* Texts of a prompt are seen one after another, where they begin at slot 0. */
        read_tokens(compute, &cache, &texts, 1, slots, prompt, &observer, blended);
        read_tokens(compute, &cache, &texts, 1, slots + 1, prompt + 1, NULL, blended);
        read_tokens(compute, &cache, &texts, 2, slots, next, &observer, blended);
        read_tokens(compute, &cache, &texts, 1, slots, (const int64_t[]){4}, &observer, blended);
        assert_int_equal(seen.calls, 3);
        assert_int_equal(seen.rows, 20 + 2 + 4);
        key_value_cache_release(&cache);
        free(blended);
    }
    free(texts.projected);
}

static void test_what_an_observer_sees(void **state)
{
    (void)state;
    each_isa(1, observers);
}

static bool refuse(void *user, const struct compute *compute, const struct attention_record *record,
                   struct attn_error *error)
{
    (void)user, (void)compute, (void)record;
    return attn_error_set(error, "no more");
}

static void test_an_observer_ends_it(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct key_value_cache cache = make_cache(CACHE_F32);
    static const float q[WIDTH], k[KEY_WIDTH];
    float y[WIDTH], stats[2 * HEADS];
    const int64_t starts[] = {0, 1}, slot = 0;
    const struct cached_batch batch = {{1, starts}, &slot};
    const struct attention_observer observer = {refuse, NULL, NULL};
    struct attn_error error;
    assert_false(cached_attention(&compute, &cache, 0, &batch, HEADS, ATTN_PRECISION_EXACT, q,
                                  WIDTH, k, k, KEY_WIDTH, y, stats, &observer, NULL, &error));
    assert_message(&error, "no more");
    key_value_cache_release(&cache);
    compute_destroy(&compute);
}

static void bits_of_reading(const struct compute *compute, float *result)
{
    const int64_t length = 130;
    const struct texts texts = make_texts(&length, 1);
    read_in_parts(compute, CACHE_F16, &texts, 120, 1, result);
    free(texts.projected);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    each_thread_count(130 * WIDTH, bits_of_reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_texts_side_by_side),
        cmocka_unit_test(test_what_an_observer_sees),
        cmocka_unit_test(test_an_observer_ends_it),
        cmocka_unit_test(test_threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
