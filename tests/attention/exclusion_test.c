/* Keys that a row excludes: weight exactly 0, and nothing of their K and V is seen in the row, be
 * it NaN or infinite. What a row does keep is seen there, and only there. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { BATCH = 2, HEADS = 2, QUERIES = 21, KEYS = 131, D_QK = 5, D_V = 19 };

static const struct attention_sizes usual = {BATCH, HEADS, 1, QUERIES, KEYS, D_QK, D_V};
static const int64_t lengths[BATCH] = {98, 0};

/* What K and V are stored as; a NaN or Inf is one in each of them. */
static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
static const char *const type_names[] = {"f32", "f16", "bf16"};

enum exclusion {
    BY_LENGTHS,
    BY_CAUSALITY,
    BY_CAUSALITY_FROM_THE_END,
    BY_A_WINDOW,
    BY_KEEP,
    BY_KEEP_OF_KEYS,
    BY_KEEP_OF_QUERIES,
    BY_BIAS,
    BY_BIAS_AND_A_SINK,
    BY_BIAS_OF_KEYS,
    BY_A_BIAS_OF_F16,
    BY_A_PREFIX,
    BY_DOCUMENTS,
    BY_SEQUENCES,
    BY_A_CALLBACK,
    BY_A_CALLBACK_AND_A_RANGE,
    EXCLUSIONS
};

static const char *const names[EXCLUSIONS] = {"lengths",
                                              "causality",
                                              "causality from the end",
                                              "a window",
                                              "keep",
                                              "keep of keys",
                                              "keep of queries",
                                              "bias",
                                              "bias, sink",
                                              "bias of keys",
                                              "bias of f16",
                                              "a prefix",
                                              "documents",
                                              "sequences",
                                              "a callback",
                                              "a callback and a range"};

/* A band around key 5·query. */
enum { BAND_STEP = 5, BAND_REACH = 30 };

static void exclude_beside_a_band(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++) {
        for (int64_t j = 0; j < tile->keys; j++) {
            int64_t middle = BAND_STEP * (tile->query + i), key = tile->key + j;
            if (key < middle - BAND_REACH || key > middle + BAND_REACH)
                tile->scores[i * tile->query_stride + j * tile->key_stride] = -INFINITY;
        }
    }
}

static void range_of_a_band(void *user, int64_t sequence, int64_t head, int64_t query,
                            int64_t queries, int64_t *begin, int64_t *end)
{
    (void)user, (void)sequence, (void)head;
    int64_t first = BAND_STEP * query - BAND_REACH;
    int64_t last = BAND_STEP * (query + queries - 1) + BAND_REACH;
    *begin = first > *begin ? first : *begin;
    *end = last + 1 < *end ? last + 1 : *end;
    if (*end < *begin)
        *end = *begin;
}

/* −inf in about a third of a bias. */
static void add_excluding_bias(struct attention_problem *problem, const int64_t shape[4])
{
    attention_add_bias(problem, shape, 3);
    struct random_source source = {4};
    float *bias = problem->bias.data;
    for (size_t i = 0; i < tensor_elements(&problem->bias); i++)
        if (random_integer(&source, 0, 2) == 0)
            bias[i] = -INFINITY;
}

static void make(struct attention_problem *problem, enum exclusion by)
{
    static const float sinks[HEADS] = {1, -2};
    static const int64_t prefixes[BATCH] = {17, 96};
    static const int64_t query_parts[] = {8, 1, 11}, key_parts[] = {17, 79, 30};
    struct attention_sizes sizes = usual;
    sizes.batch = by == BY_SEQUENCES ? 1 : BATCH;
    attention_make(problem, &sizes, 1);
    attn_params *params = &problem->params;
    switch (by) {
    case BY_LENGTHS:
        params->key_lengths = lengths;
        break;
    case BY_CAUSALITY:
        params->causal = 1;
        break;
    case BY_CAUSALITY_FROM_THE_END:
        params->causal = 1;
        params->alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        break;
    case BY_A_WINDOW:
        params->alignment = ATTN_ALIGN_OFFSET;
        params->offset = 85;
        params->window_left = 9;
        params->window_right = 3;
        break;
    case BY_KEEP:
        attention_add_keep(problem, (int64_t[]){BATCH, HEADS, QUERIES, KEYS}, 2, 3);
        break;
    case BY_KEEP_OF_KEYS:
        attention_add_keep(problem, (int64_t[]){BATCH, 1, 1, KEYS}, 2, 3);
        break;
    case BY_KEEP_OF_QUERIES:
        attention_add_keep(problem, (int64_t[]){1, 1, QUERIES, 1}, 2, 2);
        break;
    case BY_BIAS:
        add_excluding_bias(problem, (int64_t[]){BATCH, HEADS, QUERIES, KEYS});
        break;
    case BY_BIAS_AND_A_SINK:
        add_excluding_bias(problem, (int64_t[]){BATCH, HEADS, QUERIES, KEYS});
        params->sinks = sinks;
        break;
    case BY_BIAS_OF_KEYS:
        add_excluding_bias(problem, (int64_t[]){1, HEADS, 1, KEYS});
        break;
    case BY_A_BIAS_OF_F16:
        add_excluding_bias(problem, (int64_t[]){1, HEADS, QUERIES, KEYS});
        attention_store_bias(problem, ATTN_F16);
        break;
    case BY_A_PREFIX:
        params->causal = 1;
        params->prefix_lengths = prefixes;
        break;
    case BY_DOCUMENTS:
        attention_add_documents(problem, 9, 5);
        break;
    case BY_SEQUENCES:
        attention_add_sequences(problem, COUNT(key_parts), query_parts, key_parts);
        break;
    case BY_A_CALLBACK_AND_A_RANGE:
        params->key_range = range_of_a_band;
        params->change_scores = exclude_beside_a_band;
        break;
    default:
        params->change_scores = exclude_beside_a_band;
    }
}

/* The same with K and V of a type. */
static void make_stored(struct attention_problem *problem, enum exclusion by, attn_type type)
{
    make(problem, by);
    attention_store(problem, ATTN_F32, type, type);
}

static bool row_keeps(const struct attention_problem *problem, size_t row, int64_t key)
{
    int64_t n = (int64_t)row, query = n % QUERIES;
    if (problem->params.change_scores && llabs(key - BAND_STEP * query) > BAND_REACH)
        return false;
    return reference_keeps(&problem->params, n / (HEADS * QUERIES), n / QUERIES % HEADS, query, key,
                           QUERIES, KEYS);
}

/* Rows that exclude the key have the bits they had before. */
static void check_other_rows(const struct attention_problem *problem, int64_t key,
                             const struct attention_result *clean,
                             const struct attention_result *result)
{
    for (size_t row = 0; row < clean->rows; row++) {
        if (row_keeps(problem, row, key))
            continue;
        CHECK_SAME_BITS(result->o + row * D_V, clean->o + row * D_V, D_V);
        CHECK_SAME_BITS(result->stats + row * 2, clean->stats + row * 2, 2);
        CHECK_SAME_BITS(result->weights + row * KEYS, clean->weights + row * KEYS, KEYS);
        CHECK_WITHIN(result->weights[row * KEYS + (size_t)key], 0, 0);
    }
}

/* In the first block of keys, at its borders, in the middle and at the end. */
static const int64_t poisoned_keys[] = {0, 5, 15, 88, 95, 96, 97, 101, 130};

static float poison(size_t n)
{
    const uint32_t nan_with_payload = GUARDED_NAN_BITS;
    float strange;
    memcpy(&strange, &nan_with_payload, sizeof strange);
    const float poisons[] = {NAN, INFINITY, -INFINITY, strange};
    return poisons[n % COUNT(poisons)];
}

/* One strange number in one key of every batch, and what comes of it. */
struct poisoning {
    struct attention_problem problem;
    struct attention_result clean, result;
    int64_t key, column;
};

static void poison_one(attn_context *context, struct poisoning *poisoning, bool in_values,
                       enum exclusion by, size_t n, size_t type)
{
    struct attention_problem *problem = &poisoning->problem;
    make_stored(problem, by, types[type]);
    attention_solve(context, problem, &poisoning->clean);
    const attn_tensor *poisoned = in_values ? &problem->v : &problem->k;
    int64_t key = poisoning->key = poisoned_keys[n];
    poisoning->column = (int64_t)n % poisoned->shape[3];
    for (int64_t b = 0; b < poisoned->shape[0]; b++)
        tensor_set(poisoned, b, 0, key, poisoning->column, poison(n + by));
    attention_solve(context, problem, &poisoning->result);
    test_context("%g in %s %d of %s, excluded by %s", (double)poison(n + by),
                 in_values ? "value" : "key", (int)key, type_names[type], names[by]);
    check_other_rows(problem, key, &poisoning->clean, &poisoning->result);
    CHECK_RESULT(problem, &poisoning->result);
}

/* Each exclusion with each key; the types in turn. */
static size_t type_of(enum exclusion by, size_t n)
{
    return ((size_t)by + n) % COUNT(types);
}

static void poison_in_keys(attn_context *context)
{
    for (enum exclusion by = 0; by < EXCLUSIONS; by++) {
        for (size_t n = 0; n < COUNT(poisoned_keys); n++) {
            struct poisoning poisoning;
            if (!test_takes_one_in(13))
                continue;
            poison_one(context, &poisoning, false, by, n, type_of(by, n));
            guarded_release_all();
        }
    }
}

/* A row that keeps the value shows it in that column, and in no other. */
static void check_rows_that_keep(const struct poisoning *poisoning)
{
    size_t column = (size_t)poisoning->column;
    for (size_t row = 0; row < poisoning->clean.rows; row++) {
        const float *o = poisoning->result.o + row * D_V;
        const float *before = poisoning->clean.o + row * D_V;
        if (!row_keeps(&poisoning->problem, row, poisoning->key))
            continue;
        CHECK(!isfinite(o[column]));
        CHECK_SAME_BITS(o, before, column);
        CHECK_SAME_BITS(o + column + 1, before + column + 1, D_V - column - 1);
    }
}

static void poison_in_values(attn_context *context)
{
    for (enum exclusion by = 0; by < EXCLUSIONS; by++) {
        for (size_t n = 0; n < COUNT(poisoned_keys); n++) {
            struct poisoning poisoning;
            if (!test_takes_one_in(13))
                continue;
            poison_one(context, &poisoning, true, by, n, type_of(by, n));
            const struct attention_result *clean = &poisoning.clean, *result = &poisoning.result;
            CHECK_SAME_BITS(result->stats, clean->stats, 2 * clean->rows);
            CHECK_SAME_BITS(result->weights, clean->weights, clean->weight_count);
            check_rows_that_keep(&poisoning);
            guarded_release_all();
        }
    }
}

/* All excluded keys at once, as padding that was never written. */
static void poison_everywhere_excluded(attn_context *context)
{
    for (enum exclusion by = 0; by < EXCLUSIONS; by++) {
        struct attention_problem problem;
        struct attention_result clean, result;
        if (!test_takes_one_in(3))
            continue;
        make_stored(&problem, by, types[type_of(by, 0)]);
        attention_solve(context, &problem, &clean);
        for (int64_t b = 0; b < problem.k.shape[0]; b++)
            for (int64_t j = 0; j < KEYS; j++) {
                bool kept = false;
                for (int64_t row = 0; row < HEADS * QUERIES; row++)
                    kept |= row_keeps(&problem, (size_t)(b * HEADS * QUERIES + row), j);
                for (int64_t c = 0; !kept && c < D_QK; c++)
                    tensor_set(&problem.k, b, 0, j, c, poison((size_t)(j + c)));
                for (int64_t c = 0; !kept && c < D_V; c++)
                    tensor_set(&problem.v, b, 0, j, c, poison((size_t)(j + c)));
            }
        attention_solve(context, &problem, &result);
        test_context("excluded by %s", names[by]);
        CHECK_SAME_RESULT(&result, &clean);
        guarded_release_all();
    }
}

static void poison_in_a_query_stays_in_its_row(attn_context *context)
{
    for (int64_t i = 0; i < QUERIES; i++) {
        struct attention_problem problem;
        struct attention_result clean, result;
        if (!test_takes_one_in(5))
            continue;
        make(&problem, BY_KEEP);
        attention_solve(context, &problem, &clean);
        tensor_set(&problem.q, 0, 1, i, 2, poison((size_t)i % 2 ? 0 : 3));
        attention_solve(context, &problem, &result);
        test_context("query %d", (int)i);
        for (size_t row = 0; row < clean.rows; row++) {
            const float *o = result.o + row * D_V, *weights = result.weights + row * KEYS;
            if (row != (size_t)(QUERIES + i)) {
                CHECK_SAME_BITS(o, clean.o + row * D_V, D_V);
                CHECK_SAME_BITS(weights, clean.weights + row * KEYS, KEYS);
                continue;
            }
            CHECK_ALL(o, NAN, D_V);
            for (int64_t j = 0; j < KEYS; j++)
                CHECK_WITHIN(weights[j], row_keeps(&problem, row, j) ? (double)NAN : 0, 0);
        }
        guarded_release_all();
    }
}

/* A score of −inf that comes out of q·k excludes like any other. */
static void a_score_of_minus_infinity_excludes(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result without, with;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, 3, 7, 1, 2}, 5);
    tensor_fill(&problem.q, 1);
    attention_add_keep(&problem, (int64_t[]){1, 1, 1, 7}, 0, INT64_C(1) << 62);
    tensor_set(&problem.keep, 0, 0, 0, 4, 0);
    attention_solve(context, &problem, &without);
    problem.params.keep = NULL;
    tensor_set(&problem.k, 0, 0, 4, 0, -INFINITY);
    tensor_set(&problem.v, 0, 0, 4, 1, NAN);
    attention_solve(context, &problem, &with);
    CHECK_SAME_RESULT(&with, &without);

    tensor_fill(&problem.k, -INFINITY);
    tensor_fill(&problem.v, NAN);
    attention_solve(context, &problem, &with);
    CHECK_ALL(with.o, 0, with.outputs);
    CHECK_ALL(with.weights, 0, with.weight_count);

    /* +inf is no number to weigh by: NaN for the row. */
    tensor_fill(&problem.v, 1);
    tensor_set(&problem.k, 0, 0, 2, 0, INFINITY);
    attention_solve(context, &problem, &with);
    CHECK_ALL(with.o, NAN, with.outputs);
}

static void rows_without_a_key(attn_context *context)
{
    for (int with_sink = 0; with_sink < 2; with_sink++) {
        static const float sinks[HEADS] = {-700, 80};
        struct attention_problem problem;
        struct attention_result result;
        make(&problem, BY_KEEP_OF_QUERIES);
        problem.params.sinks = with_sink ? sinks : NULL;
        tensor_set(&problem.v, 0, 0, 3, 3, INFINITY);
        attention_solve(context, &problem, &result);
        size_t empty_rows = 0;
        test_context("sink %d", with_sink);
        for (size_t row = 0; row < result.rows; row++) {
            if (row_keeps(&problem, row, 0))
                continue;
            empty_rows++;
            float sink = sinks[row / QUERIES % HEADS];
            CHECK_ALL(result.o + row * D_V, 0, D_V);
            CHECK_ALL(result.weights + row * KEYS, 0, KEYS);
            CHECK_WITHIN(result.stats[2 * row], with_sink ? sink : -INFINITY, 0);
            CHECK_WITHIN(result.stats[2 * row + 1], with_sink, 0);
        }
        CHECK(empty_rows > 0 && empty_rows < result.rows);
    }
}

/* A mask of a large finite number is a score like any other: rows of only such keys are uniform. */
static void finite_masks_are_scores(attn_context *context)
{
    const float masks[] = {-1e4f, -1e9f, -1e30f, -3.4028235e38f};
    for (size_t n = 0; n < COUNT(masks); n++) {
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 18, 130, 3, 2}, 6);
        tensor_fill(&problem.q, 0);
        attention_add_bias(&problem, (int64_t[]){1, 1, 18, 130}, 0);
        tensor_fill(&problem.bias, masks[n]);
        /* Row 3 has one real key. */
        tensor_set(&problem.bias, 0, 0, 3, 77, 0);
        attention_solve(context, &problem, &result);
        test_context("mask %g", (double)masks[n]);
        CHECK_RESULT(&problem, &result);
        for (size_t row = 0; row < result.rows; row++)
            for (size_t j = 0; j < 130; j++)
                CHECK_WITHIN(result.weights[row * 130 + j], row == 3 ? (j == 77) : 1.0 / 130, 1e-9);
    }
}

int main(void)
{
    isa_each_context("NaN and Inf in K of excluded keys", poison_in_keys);
    isa_each_context("NaN and Inf in V of excluded keys", poison_in_values);
    isa_each_context("NaN and Inf wherever nobody looks", poison_everywhere_excluded);
    isa_each_context("NaN in a query stays in its row", poison_in_a_query_stays_in_its_row);
    isa_each_context("a score of -inf excludes", a_score_of_minus_infinity_excludes);
    isa_each_context("rows without a key", rows_without_a_key);
    isa_each_context("finite masks are scores", finite_masks_are_scores);
    return test_finish();
}
