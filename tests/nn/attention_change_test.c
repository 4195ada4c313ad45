/* Attention that is changed while it is computed, against its definition in double: scores that are
 * excluded by a callback, and heads that are off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/cached_attention.h"

/* Excluded by place alone; head 0 is left as it is, and query 2 of head 1 has no key at all. */
static bool is_cut(int64_t sequence, int64_t head, int64_t query, int64_t key)
{
    return head > 0 && ((head == 1 && query == 2) || (sequence + head + 3 * query + key) % 4 == 0);
}

static void cut(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++)
            if (is_cut(tile->sequence, tile->head, tile->query + i, tile->key + j))
                tile->scores[i * tile->query_stride + j * tile->key_stride] = -INFINITY;
}

static float at(const attn_tensor *tensor, int64_t b, int64_t head, int64_t row, int64_t c)
{
    return ((const float *)tensor->data)[b * tensor->stride[0] + head * tensor->stride[1] +
                                         row * tensor->stride[2] + c * tensor->stride[3]];
}

/* Where a query stands: its sequence, and the rows of k that it may see. */
struct place {
    int64_t sequence, query, key_begin, keys;
};

static struct place place_of(const attn_params *params, int64_t b, int64_t row, int64_t keys)
{
    if (params->sequences == 0)
        return (struct place){b, row, 0, params->key_lengths ? params->key_lengths[b] : keys};
    int64_t s = 0;
    while (row >= params->query_starts[s + 1])
        s++;
    return (struct place){s, row - params->query_starts[s], params->key_starts[s],
                          params->key_starts[s + 1] - params->key_starts[s]};
}

/* What each call should blend, appended in double as it is observed. */
struct expectation {
    const struct attention_change *change;
    bool has_cuts;
    float *blended; /* [tokens][heads·d] of all calls so far */
    int64_t tokens;
    float *projected; /* of the last call */
};

static void expect_row(const struct expectation *expectation, const struct attention_record *record,
                       int64_t b, int64_t head, int64_t row, float *blended)
{
    const attn_params *params = record->params;
    const int64_t d = record->q.shape[3];
    const int64_t key_head = head / (record->q.shape[1] / record->k.shape[1]);
    const struct place place = place_of(params, b, row, record->k.shape[2]);
    double l = 0.0, o[64] = {0};
    assert_true(d <= 64);
    for (int64_t j = 0; j < place.keys; j++) {
        if (params->causal && j > place.query + params->offset)
            break;
        if (expectation->has_cuts && is_cut(place.sequence, head, place.query, j))
            continue;
        double score = 0.0;
        for (int64_t c = 0; c < d; c++)
            score += (double)at(&record->q, b, head, row, c) *
                     (double)at(&record->k, b, key_head, place.key_begin + j, c);
        const double weight = exp(score / sqrt((double)d));
        l += weight;
        for (int64_t c = 0; c < d; c++)
            o[c] += weight * (double)at(&record->v, b, key_head, place.key_begin + j, c);
    }
    const bool is_off = expectation->change->heads_off && expectation->change->heads_off[head];
    for (int64_t c = 0; c < d; c++)
        blended[c] = l == 0.0 || is_off ? 0.0f : (float)(o[c] / l);
}

/* The record has what it takes to know the result; weights of an ablated head are still those. */
static bool expect(void *user, const struct compute *compute, const struct attention_record *record,
                   struct attn_error *error)
{
    (void)error;
    struct expectation *expectation = user;
    const int64_t heads = record->q.shape[1], rows = record->q.shape[2], d = record->q.shape[3];
    float *begin = expectation->blended + expectation->tokens * heads * d;
    for (int64_t b = 0; b < record->q.shape[0]; b++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t head = 0; head < heads; head++)
                expect_row(expectation, record, b, head, row,
                           begin + ((b * rows + row) * heads + head) * d);
    expectation->tokens += record->q.shape[0] * rows;
    if (record->output.project)
        record->output.project(record->output.user, compute, rows, begin, expectation->projected);
    return true;
}

enum { HEADS = 4, D = 12, WIDTH = 20, TOKENS = 71, INNER = HEADS * D };

static const bool off[HEADS] = {false, false, true, false};
static const struct {
    struct attention_change change;
    bool has_cuts;
} changes[] = {
    {{0}, false},
    {{.change_scores = cut}, true},
    {{.heads_off = off}, false},
    {{.change_scores = cut, .heads_off = off}, true},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static float *make_floats(int64_t count, double step)
{
    float *numbers = malloc((size_t)count * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t n = 0; n < count; n++)
        numbers[n] = (float)(0.7 * sin((double)n * step + 0.3));
    return numbers;
}

static void whole_layers(const struct compute *compute, enum self_attention_sight sight)
{
    const int64_t starts[] = {0, 5, 6, 40, TOKENS};
    const struct packed_batch batch = {4, starts};
    float *weights = make_floats(4 * WIDTH * INNER, 1.37), *x = make_floats(TOKENS * WIDTH, 0.91);
    struct linear *parts[4];
    struct self_attention layer = {.heads = HEADS, .sight = sight};
    parts[0] = &layer.query, parts[1] = &layer.key, parts[2] = &layer.value;
    parts[3] = &layer.output;
    for (int n = 0; n < 4; n++)
        *parts[n] =
            (struct linear){.weight = weights + n * WIDTH * INNER, .in = WIDTH, .out = INNER};
    layer.output.in = INNER, layer.output.out = WIDTH;
    float *workspace = malloc((size_t)self_attention_workspace(&layer, TOKENS) * sizeof *workspace);
    float *blended = malloc(TOKENS * INNER * sizeof *blended);
    assert_true(workspace && blended);

    static float y[TOKENS * WIDTH], projected[TOKENS * WIDTH], unchanged[TOKENS * WIDTH];
    for (int n = 0; n < CHANGES; n++) {
        struct expectation expectation = {&changes[n].change, changes[n].has_cuts, blended, 0,
                                          projected};
        const struct attention_observer observer = {expect, &expectation, &changes[n].change};
        struct attn_error error;
        memset(y, 0, sizeof y);
        assert_true(
            self_attention_forward(compute, &layer, &batch, x, y, workspace, &observer, &error));
        assert_near(y, projected, TOKENS * WIDTH, 1e-5);
        if (n == 0)
            memcpy(unchanged, y, sizeof y);
        assert_true((memcmp(y, unchanged, sizeof y) == 0) == (n == 0));
    }
    /* A change of nothing is none, bit for bit. */
    struct attn_error error;
    memset(y, 0, sizeof y);
    assert_true(self_attention_forward(compute, &layer, &batch, x, y, workspace, NULL, &error));
    assert_memory_equal(y, unchanged, sizeof y);
    free(blended);
    free(workspace);
    free(x);
    free(weights);
}

static void layers(const struct compute *compute)
{
    whole_layers(compute, SELF_ATTENTION_ALL);
    whole_layers(compute, SELF_ATTENTION_CAUSAL);
}

static void test_self_attention(void **state)
{
    (void)state;
    each_isa(2, layers);
}

/* Two texts over a cache with fewer key heads: their beginnings, a single token of each together,
 * and some more of the second. */
static void over_a_cache(const struct compute *compute)
{
    enum { KEY_HEADS = 2, STRIDE = INNER + 2 * KEY_HEADS * D, MOST = 48 };
    static const struct {
        int64_t sequences, slots[2], counts[2];
    } calls[] = {{2, {0, 1}, {5, 40}}, {2, {0, 1}, {1, 1}}, {1, {1}, {4}}};
    float *projected = make_floats(MOST * STRIDE, 0.77);
    float *expected = malloc(MOST * INNER * sizeof *expected);
    float blended[MOST * INNER], stats[2 * HEADS * MOST];
    assert_non_null(expected);
    for (int n = 0; n < CHANGES; n++) {
        const struct key_value_settings settings = {CACHE_F32, 1, 2, KEY_HEADS, D, MOST};
        struct key_value_cache cache;
        struct attn_error error;
        assert_true(key_value_cache_create(&cache, &settings, &error));
        for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
            const int64_t *counts = calls[call].counts;
            const int64_t starts[] = {0, counts[0], counts[0] + counts[1]};
            const struct cached_batch batch = {{calls[call].sequences, starts}, calls[call].slots};
            const int64_t tokens = starts[calls[call].sequences];
            struct expectation expectation = {&changes[n].change, changes[n].has_cuts, expected, 0,
                                              NULL};
            const struct attention_observer observer = {expect, &expectation, &changes[n].change};
            if (!cached_attention(compute, &cache, 0, &batch, HEADS, ATTN_PRECISION_EXACT,
                                  projected, STRIDE, projected + INNER,
                                  projected + INNER + KEY_HEADS * D, STRIDE, blended, stats,
                                  &observer, NULL, &error))
                fail_msg("%s", error.message);
            assert_int_equal(expectation.tokens, tokens);
            assert_near(blended, expected, (size_t)(tokens * INNER), 2e-6);
            for (int64_t s = 0; s < calls[call].sequences; s++)
                cache.lengths[calls[call].slots[s]] += counts[s];
        }
        key_value_cache_release(&cache);
    }
    free(expected);
    free(projected);
}

static void test_cached_attention(void **state)
{
    (void)state;
    each_isa(2, over_a_cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_attention),
        cmocka_unit_test(test_cached_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
