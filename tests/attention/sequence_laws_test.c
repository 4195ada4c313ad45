/* Laws of sequences: packed, in pages, with prefixes and documents, of any length. "The same" means
 * the same bits. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { HEADS = 4, KEY_HEADS = 2, D_QK = 11, D_V = 13 };

static const float slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
static const float sinks[HEADS] = {0.5f, -INFINITY, 3, -1};

/* From a row without neighbours to two panels of any ISA and more. */
static void rows_do_not_depend_on_their_number(attn_context *context)
{
    enum { MOST = 40, KEYS = 131 };
    const struct attention_sizes sizes = {1, HEADS, KEY_HEADS, MOST, KEYS, D_QK, D_V};
    for (int with_masks = 0; with_masks < 2; with_masks++) {
        struct attention_problem problem;
        struct attention_result all;
        attention_make(&problem, &sizes, 1);
        if (with_masks) {
            attention_add_keep(&problem, (int64_t[]){1, HEADS, MOST, KEYS}, 2, 5);
            problem.params.causal = 1;
            problem.params.alignment = ATTN_ALIGN_OFFSET;
            problem.params.offset = 90;
            problem.params.sinks = sinks;
        }
        attention_solve(context, &problem, &all);
        for (int64_t queries = 1; queries <= MOST; queries++) {
            struct attention_problem part;
            struct attention_result result, expected;
            if (!test_takes_one_in(7))
                continue;
            attention_copy(&problem, &part);
            part.q = tensor_part(&problem.q, 2, 0, queries);
            if (with_masks)
                part.keep = tensor_part(&problem.keep, 2, 0, queries);
            attention_solve(context, &part, &result);
            attention_result_part(
                &problem, &all,
                &(struct attention_part){
                    .batches = 1, .heads = HEADS, .queries = queries, .keys = KEYS},
                &expected);
            test_context("%d queries, masks %d", (int)queries, with_masks);
            CHECK_SAME_RESULT(&result, &expected);
        }
        guarded_release_all();
    }
}

enum { SEQUENCES = 7 };
static const int64_t query_lengths[SEQUENCES] = {5, 0, 33, 1, 16, 9, 17};
static const int64_t key_lengths[SEQUENCES] = {97, 4, 0, 40, 16, 130, 3};
enum { QUERIES = 84, KEYS = 293 }; /* three queries and three keys of no sequence */

static void make_packed(struct attention_problem *problem, int64_t heads, int64_t key_heads)
{
    attention_make(problem,
                   &(struct attention_sizes){1, heads, key_heads, QUERIES, KEYS, D_QK, D_V}, 3);
    attention_add_sequences(problem, SEQUENCES, query_lengths, key_lengths);
}

/* Every option that a sequence can have, as far as `level` goes. */
enum { PACKED_LEVELS = 5 };
static void make_rich_packed(struct attention_problem *problem, int level)
{
    static const int64_t kept[SEQUENCES] = {97, 2, 0, 33, 16, 99, 3};
    static const int64_t prefixes[SEQUENCES] = {7, 90, 0, 12, 3, 0, 1};
    make_packed(problem, HEADS, KEY_HEADS);
    attn_params *params = &problem->params;
    if (level >= 1) {
        params->causal = 1;
        params->alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        params->sinks = sinks;
    }
    if (level >= 2) {
        params->key_lengths = kept;
        params->prefix_lengths = prefixes;
        params->window_left = 50;
    }
    if (level >= 3) {
        attention_add_keep(problem, (int64_t[]){1, HEADS, QUERIES, KEYS}, 4, 6);
        attention_add_bias(problem, (int64_t[]){1, 1, QUERIES, KEYS}, 5);
        params->alibi_slopes = slopes;
        params->soft_cap = 4;
    }
    if (level >= 4) {
        attention_add_documents(problem, 60, 6);
        attention_store(problem, ATTN_BF16, ATTN_I8, ATTN_F16);
    }
}

static void check_row_of_no_sequence(const struct attention_problem *problem,
                                     const struct attention_result *result, size_t row)
{
    size_t head = row / QUERIES;
    bool has_sink = problem->params.sinks && sinks[head] != -INFINITY;
    CHECK_ALL(result->o + row * D_V, 0, D_V);
    CHECK_ALL(result->weights + row * KEYS, 0, KEYS);
    CHECK_WITHIN(result->stats[2 * row], has_sink ? sinks[head] : -INFINITY, 0);
    CHECK_WITHIN(result->stats[2 * row + 1], has_sink, 0);
}

static void a_packed_sequence_is_one_alone(attn_context *context)
{
    for (int level = 0; level < PACKED_LEVELS; level++) {
        struct attention_problem problem;
        struct attention_result all;
        make_rich_packed(&problem, level);
        attention_solve(context, &problem, &all);
        test_context("options up to %d", level);
        CHECK_RESULT(&problem, &all);
        for (int64_t s = 0; s < SEQUENCES; s++) {
            struct attention_problem alone;
            struct attention_result result, expected;
            attention_one_sequence(&problem, s, &alone);
            attention_solve(context, &alone, &result);
            attention_result_part(&problem, &all,
                                  &(struct attention_part){.query = problem.params.query_starts[s],
                                                           .key = problem.params.key_starts[s],
                                                           .batches = 1,
                                                           .heads = HEADS,
                                                           .queries = query_lengths[s],
                                                           .keys = key_lengths[s]},
                                  &expected);
            test_context("options up to %d, sequence %d", level, (int)s);
            CHECK_SAME_RESULT(&result, &expected);
        }
        test_context("options up to %d, outside", level);
        for (size_t i = 0; i < all.weight_count; i++) {
            int64_t query = (int64_t)(i / KEYS) % QUERIES, key = (int64_t)i % KEYS;
            struct reference_sequence sequence =
                reference_sequence_of(&problem.params, 0, query, QUERIES, KEYS);
            int64_t place = key - sequence.key_begin;
            if (sequence.index < 0 || place < 0 || place >= sequence.keys)
                CHECK(all.weights[i] == 0);
        }
        for (size_t row = 0; row < all.rows; row++)
            if (reference_sequence_of(&problem.params, 0, (int64_t)row % QUERIES, QUERIES, KEYS)
                    .index < 0)
                check_row_of_no_sequence(&problem, &all, row);
        guarded_release_all();
    }
}

/* What lies outside of all sequences, and beyond key lengths, is never read. */
static void no_sequence_sees_another(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result before, after;
    make_rich_packed(&problem, 3);
    attention_solve(context, &problem, &before);
    /* Sequence 5 and the keys behind the last sequence. */
    const int64_t first = problem.params.key_starts[5], count = key_lengths[5];
    const int64_t parts[][2] = {{first, count}, {KEYS - 3, 3}};
    for (size_t n = 0; n < COUNT(parts); n++) {
        attn_tensor k = tensor_part(&problem.k, 2, parts[n][0], parts[n][1]);
        attn_tensor v = tensor_part(&problem.v, 2, parts[n][0], parts[n][1]);
        tensor_fill(&k, NAN);
        tensor_fill(&v, INFINITY);
    }
    attention_solve(context, &problem, &after);
    for (int64_t row = 0; row < HEADS * QUERIES; row++) {
        int64_t query = row % QUERIES;
        if (query >= problem.params.query_starts[5] && query < problem.params.query_starts[6])
            continue;
        test_context("row %d", (int)row);
        CHECK_SAME_BITS(after.o + row * D_V, before.o + row * D_V, D_V);
        CHECK_SAME_BITS(after.stats + row * 2, before.stats + row * 2, 2);
    }
}

static void one_packed_sequence_is_none(attn_context *context)
{
    const int64_t queries = QUERIES, keys = KEYS;
    struct attention_problem problem;
    struct attention_result plain, packed;
    attention_make(&problem,
                   &(struct attention_sizes){1, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V}, 7);
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    attention_solve(context, &problem, &plain);
    attention_add_sequences(&problem, 1, &queries, &keys);
    attention_solve(context, &problem, &packed);
    CHECK_SAME_RESULT(&packed, &plain);
}

/* Columns of weights of keys that the problem in pages has too. */
static void check_same_but_columns(const struct attention_problem *problem,
                                   const struct attention_result *result,
                                   const struct attention_problem *paged,
                                   const struct attention_result *in_pages)
{
    size_t keys = (size_t)reference_keys(&problem->params, &problem->k);
    size_t columns = (size_t)reference_keys(&paged->params, &paged->k);
    CHECK_SAME_BITS(in_pages->o, result->o, result->outputs);
    CHECK_SAME_BITS(in_pages->stats, result->stats, 2 * result->rows);
    size_t shared = keys < columns ? keys : columns;
    for (size_t row = 0; row < result->rows; row++) {
        CHECK_SAME_BITS(in_pages->weights + row * columns, result->weights + row * keys, shared);
        CHECK_ALL(in_pages->weights + row * columns + shared, 0, columns - shared);
    }
}

static void pages_change_nothing(attn_context *context)
{
    static const int64_t lengths[2] = {111, 150};
    static const int64_t page_lengths[] = {1, 3, 16, 96, 256};
    for (int kind = 0; kind < 3; kind++) {
        for (size_t n = 0; n < COUNT(page_lengths); n++) {
            if (!test_takes_one_in(3))
                continue;
            struct attention_problem problem, paged;
            struct attention_result result, in_pages;
            attention_make(&problem,
                           &(struct attention_sizes){2, HEADS, KEY_HEADS, 19, 150, D_QK, D_V}, 8);
            problem.params.key_lengths = lengths;
            attention_add_keep(&problem, (int64_t[]){2, 1, 19, 150}, 9, 7);
            attention_add_bias(&problem, (int64_t[]){1, HEADS, 1, 150}, 10);
            attention_add_documents(&problem, 100, 11);
            problem.params.prefix_lengths = (const int64_t[]){20, 3};
            problem.params.causal = 1;
            problem.params.alignment = ATTN_ALIGN_OFFSET;
            problem.params.offset = 100;
            if (kind == 1)
                attention_store(&problem, ATTN_F32, ATTN_F16, ATTN_BF16);
            if (kind == 2)
                attention_store(&problem, ATTN_F16, ATTN_I8, ATTN_I8);
            attention_page(&problem, page_lengths[n], n, &paged);
            attention_solve(context, &problem, &result);
            attention_solve(context, &paged, &in_pages);
            test_context("types %d, pages of %d", kind, (int)page_lengths[n]);
            CHECK_RESULT(&paged, &in_pages);
            check_same_but_columns(&problem, &result, &paged, &in_pages);
            guarded_release_all();
        }
    }
}

static void packed_sequences_in_pages(attn_context *context)
{
    static const int64_t page_lengths[] = {1, 7, 64};
    for (size_t n = 0; n < COUNT(page_lengths); n++) {
        if (!test_takes_one_in(3))
            continue;
        struct attention_problem problem, paged;
        struct attention_result result, in_pages;
        make_rich_packed(&problem, 1);
        attention_page(&problem, page_lengths[n], n, &paged);
        attention_solve(context, &problem, &result);
        attention_solve(context, &paged, &in_pages);
        test_context("pages of %d", (int)page_lengths[n]);
        CHECK_RESULT(&paged, &in_pages);
        CHECK_SAME_BITS(in_pages.o, result.o, result.outputs);
        CHECK_SAME_BITS(in_pages.stats, result.stats, 2 * result.rows);
        guarded_release_all();
    }
}

/* Settings that leave every key: prefixes without a mask or of 0, one document for all. */
static void neutral_sequences_change_nothing(attn_context *context)
{
    enum { LONG = 203 };
    static const int64_t none[2] = {0, 0}, everything[2] = {LONG, INT64_MAX};
    static const int64_t of_queries[2 * 41], of_keys[2 * LONG];
    const struct attention_sizes sizes = {2, HEADS, KEY_HEADS, 41, LONG, D_QK, D_V};
    for (int causal = 0; causal < 2; causal++) {
        struct attention_problem problem;
        struct attention_result plain, result;
        attention_make(&problem, &sizes, 12);
        problem.params.causal = causal;
        attention_solve(context, &problem, &plain);
        problem.params.prefix_lengths = none;
        attention_solve(context, &problem, &result);
        test_context("prefixes of 0, causal %d", causal);
        CHECK_SAME_RESULT(&result, &plain);
        problem.params.prefix_lengths = NULL;
        problem.params.query_documents = of_queries;
        problem.params.key_documents = of_keys;
        attention_solve(context, &problem, &result);
        test_context("one document, causal %d", causal);
        CHECK_SAME_RESULT(&result, &plain);
        problem.params.prefix_lengths = causal ? none : everything;
        attention_solve(context, &problem, &result);
        test_context("both, causal %d", causal);
        CHECK_SAME_RESULT(&result, &plain);
    }
}

/* Against the definition: prefixes and documents beside causality and windows. */
static void prefixes_and_documents(attn_context *context)
{
    struct random_source source = {13};
    int rounds = test_is_reduced() ? 10 : 60;
    for (int round = 0; round < rounds; round++) {
        int64_t prefixes[2];
        struct attention_problem problem;
        struct attention_result result;
        const struct attention_sizes sizes = {
            2, HEADS, KEY_HEADS, random_integer(&source, 1, 50), random_integer(&source, 1, 250),
            5, 6};
        attention_make(&problem, &sizes, (uint64_t)round);
        for (int b = 0; b < 2; b++)
            prefixes[b] = random_integer(&source, 0, sizes.keys + 9);
        attn_params *params = &problem.params;
        params->alignment = (attn_alignment)random_integer(&source, 0, 1);
        params->causal = (int)random_integer(&source, 0, 1);
        params->window_left = random_integer(&source, 0, 60);
        if (round % 3 != 1)
            params->prefix_lengths = prefixes;
        if (round % 3 != 0)
            attention_add_documents(&problem, random_integer(&source, 1, 120), (uint64_t)round);
        attention_solve(context, &problem, &result);
        test_context("round %d", round);
        CHECK_RESULT(&problem, &result);
        guarded_release_all();
    }
}

/* However heads are grouped, each has the bits of a head alone. */
static void any_grouping_of_heads(attn_context *context)
{
    static const int64_t groups[][2] = {{1, 1}, {2, 1}, {3, 1}, {6, 2}, {8, 1}, {16, 4}, {5, 5}};
    static const int64_t query_counts[] = {1, 2, 7, 18};
    for (size_t a = 0; a < COUNT(groups); a++) {
        for (size_t b = 0; b < COUNT(query_counts); b++) {
            if (!test_takes_one_in(4))
                continue;
            int64_t heads = groups[a][0], queries = query_counts[b];
            struct attention_problem problem;
            struct attention_result all;
            attention_make(
                &problem,
                &(struct attention_sizes){1, heads, groups[a][1], queries, 101, D_QK, D_V}, 14);
            attention_add_keep(&problem, (int64_t[]){1, heads, 1, 101}, 15, 5);
            attention_solve(context, &problem, &all);
            for (int64_t head = 0; head < heads; head++) {
                struct attention_problem alone;
                struct attention_result result, expected;
                attention_one_head(&problem, head, &alone);
                attention_solve(context, &alone, &result);
                attention_result_part(
                    &problem, &all,
                    &(struct attention_part){
                        .head = head, .batches = 1, .heads = 1, .queries = queries, .keys = 101},
                    &expected);
                test_context("%d heads on %d, %d queries, head %d", (int)heads, (int)groups[a][1],
                             (int)queries, (int)head);
                CHECK_SAME_RESULT(&result, &expected);
            }
            guarded_release_all();
        }
    }
}

static void any_number_of_threads(attn_isa isa)
{
    attn_context *single = isa_context(isa, 1);
    struct attention_problem problem;
    struct attention_result one, many;
    make_rich_packed(&problem, PACKED_LEVELS - 1);
    attention_solve(single, &problem, &one);
    for (int threads = 2; threads <= 5; threads++) {
        if (!test_takes_one_in(3))
            continue;
        attn_context *context = isa_context(isa, threads);
        attention_solve(context, &problem, &many);
        test_context("%d threads", threads);
        CHECK_SAME_RESULT(&many, &one);
        attn_context_destroy(context);
    }
    attn_context_destroy(single);
}

int main(void)
{
    isa_each_context("rows do not depend on their number", rows_do_not_depend_on_their_number);
    isa_each_context("a packed sequence is one alone", a_packed_sequence_is_one_alone);
    isa_each_context("no sequence sees another", no_sequence_sees_another);
    isa_each_context("one packed sequence is none", one_packed_sequence_is_none);
    isa_each_context("pages change nothing", pages_change_nothing);
    isa_each_context("packed sequences in pages", packed_sequences_in_pages);
    isa_each_context("neutral sequences change nothing", neutral_sequences_change_nothing);
    isa_each_context("prefixes and documents", prefixes_and_documents);
    isa_each_context("any grouping of heads", any_grouping_of_heads);
    isa_each("any number of threads", any_number_of_threads);
    return test_finish();
}
