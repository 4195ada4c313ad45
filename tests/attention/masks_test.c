/* Masks: each says the same as a boolean mask of the same keys, in any company. "The same" means
 * the same bits. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { HEADS = 4, KEY_HEADS = 2 };

static const float slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
static const float sinks[HEADS] = {0.5f, -INFINITY, 3, -1};

/* The problem with one boolean mask instead of all that excludes by place. */
static void with_keep_only(const struct attention_problem *problem,
                           struct attention_problem *masked)
{
    int64_t batch = problem->q.shape[0], heads = problem->q.shape[1];
    int64_t queries = problem->q.shape[2], keys = problem->k.shape[2];
    attention_copy(problem, masked);
    masked->keep =
        tensor_allocate(ATTN_BOOL, batch, heads, queries, keys, LAYOUT_PACKED, GUARD_BEHIND);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < queries; i++)
                for (int64_t j = 0; j < keys; j++)
                    tensor_set(&masked->keep, b, h, i, j,
                               reference_keeps(&problem->params, b, h, i, j, queries, keys));
    attn_params *params = &masked->params;
    params->keep = &masked->keep;
    params->causal = 0;
    params->window_left = params->window_right = ATTN_WINDOW_OPEN;
    params->key_lengths = params->prefix_lengths = NULL;
    params->query_documents = params->key_documents = NULL;
}

static void check_same_as_keep(attn_context *context, const struct attention_problem *problem)
{
    struct attention_problem masked;
    struct attention_result result, expected;
    with_keep_only(problem, &masked);
    attention_solve(context, problem, &result);
    attention_solve(context, &masked, &expected);
    CHECK_SAME_RESULT(&result, &expected);
}

/* One kind of exclusion a bit. */
enum { CAUSAL = 1, WINDOW = 2, LENGTHS = 4, PREFIX = 8, DOCUMENTS = 16, KEEP = 32, KINDS = 64 };

static void add_exclusions(struct attention_problem *problem, int kinds,
                           struct random_source *source)
{
    attn_params *params = &problem->params;
    int64_t batch = problem->q.shape[0], queries = problem->q.shape[2];
    int64_t keys = problem->k.shape[2];
    int64_t *lengths = guarded_bytes((size_t)batch * sizeof *lengths, 8, GUARD_BEHIND);
    int64_t *prefixes = guarded_bytes((size_t)batch * sizeof *prefixes, 8, GUARD_BEHIND);
    for (int64_t b = 0; b < batch; b++) {
        lengths[b] = random_integer(source, 0, keys);
        prefixes[b] = random_integer(source, 0, keys / 2);
    }
    params->alignment = (attn_alignment)random_integer(source, 0, 2);
    params->offset = random_integer(source, -20, 200);
    params->causal = kinds & CAUSAL;
    if (kinds & WINDOW) {
        params->window_left = random_integer(source, -5, 120);
        params->window_right = random_integer(source, -5, 120);
    }
    if (kinds & LENGTHS)
        params->key_lengths = lengths;
    if (kinds & PREFIX)
        params->prefix_lengths = prefixes;
    if (kinds & DOCUMENTS)
        attention_add_documents(problem, random_integer(source, 1, 150), (uint64_t)kinds);
    if (kinds & KEEP)
        attention_add_keep(problem, (int64_t[]){batch, HEADS, queries, keys}, (uint64_t)kinds, 4);
}

/* What else may happen to a score. */
static void add_edits(struct attention_problem *problem, struct random_source *source)
{
    attn_params *params = &problem->params;
    if (random_integer(source, 0, 1))
        params->soft_cap = 3;
    if (random_integer(source, 0, 1))
        params->alibi_slopes = slopes;
    if (random_integer(source, 0, 1))
        params->sinks = sinks;
    if (random_integer(source, 0, 1))
        attention_add_bias(problem, (int64_t[]){1, HEADS, problem->q.shape[2], problem->k.shape[2]},
                           3);
}

static void every_company_of_masks(attn_context *context)
{
    struct random_source source = {1};
    for (int kinds = 0; kinds < KINDS; kinds += test_is_reduced() ? 23 : 1) {
        struct attention_problem problem;
        struct attention_result result;
        const struct attention_sizes sizes = {
            2, HEADS, KEY_HEADS, random_integer(&source, 1, 45), random_integer(&source, 1, 260),
            5, 6};
        attention_make(&problem, &sizes, (uint64_t)kinds);
        add_exclusions(&problem, kinds, &source);
        add_edits(&problem, &source);
        test_context("kinds %d", kinds);
        attention_solve(context, &problem, &result);
        CHECK_RESULT(&problem, &result);
        /* ALiBi counts from the place of a query, which the mask does not change. */
        check_same_as_keep(context, &problem);
        guarded_release_all();
    }
}

/* Long rows, of which every block but a few is skipped. */
static void long_rows(attn_context *context)
{
    enum { LENGTH = 700 };
    static const int64_t prefixes[] = {70};
    for (int kind = 0; kind < 4; kind++) {
        if (!test_takes_one_in(2))
            continue;
        struct attention_problem problem;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, LENGTH, LENGTH, 3, 2}, 2);
        if (kind == 0)
            problem.params.causal = 1;
        if (kind == 1)
            problem.params.window_left = problem.params.window_right = 30;
        if (kind == 2)
            attention_add_documents(&problem, 90, 3);
        if (kind == 3) {
            problem.params.causal = 1;
            problem.params.window_left = 40;
            problem.params.prefix_lengths = prefixes;
        }
        test_context("kind %d", kind);
        check_same_as_keep(context, &problem);
        guarded_release_all();
    }
}

/* Masks of every shape that broadcasts, in every layout, and biases of every type. */
static void masks_of_every_shape(attn_context *context)
{
    enum { BATCH = 2, QUERIES = 19, KEYS = 133 };
    static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
    for (int axes = 0; axes < 16; axes++) {
        int64_t shape[4] = {BATCH, HEADS, QUERIES, KEYS};
        for (int axis = 0; axis < 4; axis++)
            if (axes >> axis & 1)
                shape[axis] = 1;
        for (size_t type = 0; type < COUNT(types); type++)
            for (enum layout layout = 0; layout < LAYOUT_INPUTS; layout++) {
                struct attention_problem problem;
                struct attention_result result;
                if (!test_takes_one_in(29))
                    continue;
                attention_make(
                    &problem,
                    &(struct attention_sizes){BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, 3, 2}, 4);
                attention_add_keep(&problem, shape, 5, 6);
                attention_add_bias(&problem, shape, 6);
                attention_store_bias(&problem, types[type]);
                problem.keep = tensor_copy(&problem.keep, layout, GUARD_BEHIND);
                problem.bias = tensor_copy(&problem.bias, layout, GUARD_BEFORE);
                attention_solve(context, &problem, &result);
                test_context("axes %d, type %d, layout %d", axes, (int)type, (int)layout);
                CHECK_RESULT(&problem, &result);
                guarded_release_all();
            }
    }
}

static const enum layout one_copy_layouts[] = {LAYOUT_PACKED, LAYOUT_TRANSPOSED, LAYOUT_REVERSED,
                                               LAYOUT_SPREAD};

/* A bias of −inf excludes, even where the score is NaN. */
static void bias_excludes(attn_context *context)
{
    enum { QUERIES = 35, KEYS = 150 };
    for (size_t n = 0; n < COUNT(one_copy_layouts); n++)
        for (int capped = 0; capped < 2; capped++) {
            struct attention_problem by_keep, by_bias;
            struct attention_result expected, result;
            attention_make(&by_keep,
                           &(struct attention_sizes){1, HEADS, KEY_HEADS, QUERIES, KEYS, 4, 3}, 7);
            by_keep.params.soft_cap = capped ? 2.0f : 0.0f;
            attention_copy(&by_keep, &by_bias);
            attention_add_keep(&by_keep, (int64_t[]){1, 1, QUERIES, KEYS}, 8, 3);
            for (int64_t i = 0; i < QUERIES; i++) /* nobody keeps key 40 */
                tensor_set(&by_keep.keep, 0, 0, i, 40, 0);
            attention_add_bias(&by_bias, (int64_t[]){1, 1, QUERIES, KEYS}, 0);
            for (int64_t i = 0; i < QUERIES; i++)
                for (int64_t j = 0; j < KEYS; j++)
                    tensor_set(&by_bias.bias, 0, 0, i, j,
                               tensor_get(&by_keep.keep, 0, 0, i, j) == 0 ? -INFINITY : 0);
            by_bias.bias = tensor_copy(&by_bias.bias, one_copy_layouts[n], GUARD_BEHIND);
            tensor_set(&by_bias.k, 0, 1, 40, 2, NAN);
            tensor_set(&by_bias.v, 0, 1, 40, 1, INFINITY);
            attention_solve(context, &by_keep, &expected);
            attention_solve(context, &by_bias, &result);
            test_context("layout %d, cap %d", (int)one_copy_layouts[n], capped);
            CHECK_SAME_RESULT(&result, &expected);
            guarded_release_all();
        }
}

/* ALiBi is a bias of −slope·distance. */
static void alibi_is_a_bias(attn_context *context)
{
    enum { QUERIES = 37, KEYS = 170 };
    static const int64_t offsets[] = {
        0, 133, -50, INT64_C(1) << 23, -(INT64_C(1) << 24) - 90, (INT64_C(1) << 40) + 12345};
    for (size_t n = 0; n < COUNT(offsets); n++) {
        struct attention_problem by_slopes, by_bias;
        struct attention_result expected, result;
        attention_make(&by_slopes,
                       &(struct attention_sizes){1, HEADS, KEY_HEADS, QUERIES, KEYS, 4, 3}, 9);
        by_slopes.params.alignment = ATTN_ALIGN_OFFSET;
        by_slopes.params.offset = offsets[n];
        attention_copy(&by_slopes, &by_bias);
        by_slopes.params.alibi_slopes = slopes;
        attention_add_bias(&by_bias, (int64_t[]){1, HEADS, QUERIES, KEYS}, 0);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < QUERIES; i++)
                for (int64_t j = 0; j < KEYS; j++) {
                    float distance = (float)llabs(i + offsets[n] - j);
                    tensor_set(&by_bias.bias, 0, h, i, j, -slopes[h] * distance);
                }
        attention_solve(context, &by_slopes, &result);
        attention_solve(context, &by_bias, &expected);
        test_context("offset %lld", (long long)offsets[n]);
        CHECK_SAME_RESULT(&result, &expected);
        guarded_release_all();
    }
}

/* A cap far above all scores changes none. */
static void a_high_cap_changes_nothing(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result plain, capped;
    attention_make(&problem, &(struct attention_sizes){1, HEADS, KEY_HEADS, 21, 131, 4, 3}, 10);
    attention_solve(context, &problem, &plain);
    problem.params.soft_cap = 1e30f;
    attention_solve(context, &problem, &capped);
    CHECK_SAME_RESULT(&capped, &plain);
}

/* What other documents, and keys outside a window, hold is never read into a result. */
static void skipped_keys_do_not_leak(attn_context *context)
{
    enum { LENGTH = 400, RUN = 100 };
    int64_t *documents = guarded_bytes(LENGTH * sizeof *documents, 8, GUARD_BEHIND);
    for (int64_t i = 0; i < LENGTH; i++)
        documents[i] = i / RUN;
    for (int by_documents = 0; by_documents < 2; by_documents++) {
        if (!test_takes_one_in(2))
            continue;
        struct attention_problem problem;
        struct attention_result clean, result;
        attention_make(&problem, &(struct attention_sizes){1, 2, 1, LENGTH, LENGTH, 4, 3}, 11);
        if (by_documents)
            problem.params.query_documents = problem.params.key_documents = documents;
        else
            problem.params.window_left = problem.params.window_right = 20;
        attention_solve(context, &problem, &clean);
        /* Rows from 200 on see no key below 180, rows below 100 none of these either. */
        attn_tensor k = tensor_part(&problem.k, 2, 130, 40),
                    v = tensor_part(&problem.v, 2, 130, 40);
        tensor_fill(&k, NAN);
        tensor_fill(&v, INFINITY);
        attention_solve(context, &problem, &result);
        for (size_t row = 0; row < result.rows; row++) {
            if (row % LENGTH >= 100 && row % LENGTH < 200)
                continue;
            test_context("documents %d, row %zu", by_documents, row);
            CHECK_SAME_BITS(result.o + row * 3, clean.o + row * 3, 3);
            CHECK_SAME_BITS(result.stats + row * 2, clean.stats + row * 2, 2);
        }
    }
}

int main(void)
{
    isa_each_context("every company of masks", every_company_of_masks);
    isa_each_context("long rows", long_rows);
    isa_each_context("masks of every shape", masks_of_every_shape);
    isa_each_context("a bias of -inf excludes", bias_excludes);
    isa_each_context("ALiBi is a bias", alibi_is_a_bias);
    isa_each_context("a high cap changes nothing", a_high_cap_changes_nothing);
    isa_each_context("skipped keys do not leak", skipped_keys_do_not_leak);
    return test_finish();
}
