/* Inspection: what must not change a bit, rows that hold nothing or no number, and what lies
 * outside. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"
#include "inspect_call.h"

enum { BATCH = 1, HEADS = 2, QUERIES = 170, FEW_QUERIES = 40, KEYS = 1700, D = 8, TOP = 6 };

static int64_t query_count(void)
{
    return test_is_reduced() ? FEW_QUERIES : QUERIES;
}

/* Keys enough for three chunks of sums, and queries for several panels. */
static void make(struct attention_problem *problem, uint64_t seed)
{
    const int64_t queries = query_count();
    attention_make(problem, &(struct attention_sizes){BATCH, HEADS, 1, queries, KEYS, D, 5}, seed);
    attention_add_keep(problem, (int64_t[]){BATCH, 1, queries, KEYS}, seed, 5);
    problem->params.causal = 1;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    problem->params.window_left = 1100;
}

static void threads_change_nothing(attn_isa isa)
{
    struct attention_problem problem;
    struct inspect_result alone, shared;
    const struct inspect_wants wants = inspect_everything(TOP);
    make(&problem, 1);
    attn_context *one = isa_context(isa, 1);
    inspect_solve_forward(one, &problem, &wants, &alone);
    attn_context_destroy(one);
    for (int threads = 2; threads <= 5; threads += 3) {
        attn_context *context = isa_context(isa, threads);
        test_context("%d threads", threads);
        inspect_solve_forward(context, &problem, &wants, &shared);
        inspect_check_same(&shared, &alone);
        inspect_solve(context, &problem, &wants, &shared);
        inspect_check_same(&shared, &alone);
        attn_context_destroy(context);
    }
}

/* Each alone, with none, and lists of another length, whose first entries are the same. */
static void check_what_else_is_asked(attn_context *context, attn_type type)
{
    struct attention_problem problem;
    struct inspect_result all, part;
    make(&problem, 2);
    if (type == ATTN_F64)
        attention_store(&problem, type, type, type);
    struct inspect_wants wants = inspect_everything(TOP);
    inspect_solve_forward(context, &problem, &wants, &all);
    for (int what = 0; what < 16; what += 1 + what % 3) {
        wants.top = what & 1 ? TOP : 0;
        wants.entropy = what & 2;
        wants.maximum = what & 4;
        wants.key_sums = what & 8;
        test_context("wants %d of %s", what, type == ATTN_F64 ? "f64" : "f32");
        inspect_solve_forward(context, &problem, &wants, &part);
        inspect_check_same(&part, &all);
        inspect_solve(context, &problem, &wants, &part);
        inspect_check_same(&part, &all);
    }
    wants = (struct inspect_wants){.top = 33, .query_end = INT64_MAX};
    inspect_solve_forward(context, &problem, &wants, &part);
    for (size_t row = 0; row < all.rows; row++)
        for (size_t n = 0; n < TOP; n++) {
            CHECK_WITHIN(part.top_weights[row * 33 + n], all.top_weights[row * TOP + n], 0);
            CHECK_WITHIN(part.top_keys[row * 33 + n], all.top_keys[row * TOP + n], 0);
        }
}

static void what_else_is_asked_changes_nothing(attn_context *context)
{
    check_what_else_is_asked(context, ATTN_F32);
    check_what_else_is_asked(context, ATTN_F64);
}

static void strides_change_nothing(attn_context *context)
{
    struct attention_problem problem;
    struct inspect_result packed, other;
    const struct inspect_wants wants = inspect_everything(TOP);
    make(&problem, 3);
    inspect_solve_forward(context, &problem, &wants, &packed);
    for (int layout = 1; layout < LAYOUT_OUTPUTS; layout++) {
        problem.output_layout = (enum layout)layout;
        test_context("layout %d", layout);
        inspect_solve_forward(context, &problem, &wants, &other);
        inspect_check_same(&other, &packed);
    }
}

/* Sums of ranges of queries that follow each other add up to the sums of all. */
static void ranges_of_queries_add_up(attn_context *context)
{
    const int64_t queries = query_count();
    const int64_t ends[] = {0, 1, 33, queries - 7, queries, queries + 9};
    struct attention_problem problem;
    struct inspect_result all, part;
    struct inspect_wants wants = {.key_sums = true, .query_end = INT64_MAX};
    make(&problem, 4);
    inspect_solve(context, &problem, &wants, &all);
    double *sums = guarded_doubles(all.sums);
    for (size_t n = 0; n < all.sums; n++)
        sums[n] = 0;
    wants.query_begin = 0;
    for (size_t range = 0; range < COUNT(ends); range++) {
        wants.query_end = ends[range];
        inspect_solve(context, &problem, &wants, &part);
        for (size_t n = 0; n < all.sums; n++)
            sums[n] += part.key_sums[n];
        wants.query_begin = wants.query_end;
    }
    for (size_t n = 0; n < all.sums; n++)
        CHECK_WITHIN(sums[n], all.key_sums[n], 1e-6 + 1e-6 * all.key_sums[n]);
}

/* Without a key: weight 0, key −1, entropy 0; and a sink alone has all of the weight. */
static void rows_without_a_key(attn_context *context)
{
    const float sinks[2] = {-INFINITY, 2};
    for (int kind = 0; kind < 3; kind++) {
        struct attention_problem problem;
        struct inspect_result result;
        attention_make(&problem, &(struct attention_sizes){1, 2, 1, 40, kind == 0 ? 0 : 100, 4, 3},
                       5);
        problem.params.causal = 1;
        problem.params.offset = -41;
        problem.params.alignment = ATTN_ALIGN_OFFSET;
        problem.params.sinks = kind == 2 ? sinks : NULL;
        const struct inspect_wants wants = inspect_everything(3);
        for (int after = 0; after < 2; after++) {
            test_context("kind %d, %s", kind, after ? "attn_inspect" : "attn_forward_inspect");
            (after ? inspect_solve : inspect_solve_forward)(context, &problem, &wants, &result);
            for (size_t n = 0; n < result.rows; n++) {
                CHECK_WITHIN(result.entropy[n], 0, 0);
                CHECK_WITHIN(result.maximum[n], 0, 0);
            }
            for (size_t n = 0; n < 3 * result.rows; n++) {
                CHECK_WITHIN(result.top_weights[n], 0, 0);
                CHECK_WITHIN(result.top_keys[n], -1, 0);
            }
            for (size_t n = 0; n < result.sums; n++)
                CHECK_WITHIN(result.key_sums[n], 0, 0);
        }
        guarded_release_all();
    }
}

/* A row whose score is NaN or +inf is NaN in everything, and so are the sums of the keys that it
 * keeps; no other row or key notices. An Inf in an excluded key or value reaches nothing. */
static void rows_that_are_no_numbers(attn_context *context)
{
    enum { ROWS = 70, WIDTH = 230, BROKEN = 41, BEGIN = 100 };
    const float strange[] = {NAN, INFINITY};
    for (size_t kind = 0; kind < 2 * COUNT(strange); kind++) {
        struct attention_problem problem;
        struct inspect_result clean, result;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, ROWS, WIDTH, 4, 3}, 6);
        attention_add_bias(&problem, (int64_t[]){1, 1, ROWS, WIDTH}, 7);
        attention_add_keep(&problem, (int64_t[]){1, 1, ROWS, WIDTH}, 8, INT64_MAX);
        unsigned char *keep = problem.keep.data;
        for (int64_t j = 0; j < BEGIN; j++)
            keep[BROKEN * WIDTH + j] = 0;
        for (int64_t i = 0; i < ROWS; i++)
            keep[i * WIDTH + 7] = 0;
        if (kind >= COUNT(strange))
            attention_store(&problem, ATTN_F64, ATTN_F64, ATTN_F64);
        const struct inspect_wants wants = inspect_everything(4);
        inspect_solve_forward(context, &problem, &wants, &clean);
        /* NaN in all that the row keeps, so that its list is empty; one +inf. */
        for (int64_t j = kind % 2 ? WIDTH - 1 : BEGIN; j < WIDTH; j++)
            tensor_set(&problem.bias, 0, 0, BROKEN, j, strange[kind % COUNT(strange)]);
        for (int64_t c = 0; c < 4; c++)
            tensor_set(&problem.k, 0, 0, 7, c, INFINITY);
        tensor_set(&problem.v, 0, 0, 7, 1, NAN);
        for (int after = 0; after < 2; after++) {
            test_context("kind %d, %s", (int)kind, after ? "attn_inspect" : "attn_forward_inspect");
            (after ? inspect_solve : inspect_solve_forward)(context, &problem, &wants, &result);
            for (size_t n = 0; n < ROWS; n++) {
                CHECK_WITHIN(result.entropy[n], n == BROKEN ? NAN : clean.entropy[n], 0);
                CHECK_WITHIN(result.maximum[n], n == BROKEN ? NAN : clean.maximum[n], 0);
                for (size_t t = 4 * n; t < 4 * n + 4; t++) {
                    CHECK_WITHIN(result.top_weights[t], n == BROKEN ? NAN : clean.top_weights[t],
                                 0);
                    if (n != BROKEN)
                        CHECK_WITHIN(result.top_keys[t], clean.top_keys[t], 0);
                }
            }
            for (size_t j = 0; j < WIDTH; j++)
                CHECK_WITHIN(result.key_sums[j], j >= BEGIN ? NAN : clean.key_sums[j], 1e-5);
        }
        guarded_release_all();
    }
}

/* What no sequence holds receives nothing, and keys are rows of the tensor. */
static void packed_sequences_are_apart(attn_context *context)
{
    const int64_t queries[] = {30, 0, 45, 7}, keys[] = {900, 40, 800, 3};
    struct attention_problem problem, alone;
    struct inspect_result result, one;
    const struct inspect_wants wants = inspect_everything(TOP);
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, 90, 1800, D, 5}, 9);
    attention_add_sequences(&problem, 4, queries, keys);
    inspect_solve_forward(context, &problem, &wants, &result);
    int64_t row = 0, key = 0;
    for (int64_t s = 0; s < 4; s++) {
        attention_one_sequence(&problem, s, &alone);
        inspect_solve_forward(context, &alone, &wants, &one);
        test_context("sequence %d", (int)s);
        for (int64_t h = 0; h < 2; h++) {
            for (int64_t i = 0; i < queries[s]; i++) {
                const int64_t here = h * 90 + row + i, there = h * queries[s] + i;
                CHECK_WITHIN(result.entropy[here], one.entropy[there], 0);
                CHECK_WITHIN(result.maximum[here], one.maximum[there], 0);
                for (int64_t n = 0; n < TOP; n++) {
                    double own = one.top_keys[there * TOP + n];
                    CHECK_WITHIN(result.top_keys[here * TOP + n], own < 0 ? -1 : own + (double)key,
                                 0);
                    CHECK_WITHIN(result.top_weights[here * TOP + n],
                                 one.top_weights[there * TOP + n], 0);
                }
            }
            for (int64_t j = 0; j < keys[s]; j++)
                CHECK_WITHIN(result.key_sums[h * 1800 + key + j], one.key_sums[h * keys[s] + j], 0);
        }
        row += queries[s];
        key += keys[s];
    }
    for (int64_t h = 0; h < 2; h++) {
        for (; row < 90; row++)
            CHECK_WITHIN(result.entropy[h * 90 + row], 0, 0);
        for (int64_t j = key; j < 1800; j++)
            CHECK_WITHIN(result.key_sums[h * 1800 + j], 0, 0);
    }
}

static void nothing_to_do(attn_context *context)
{
    static const struct attention_sizes sizes[] = {
        {0, 2, 1, 5, 7, 3, 2}, {2, 0, 0, 5, 7, 3, 2}, {2, 2, 1, 0, 7, 3, 2}, {2, 2, 1, 5, 7, 3, 0}};
    for (size_t n = 0; n < 2 * COUNT(sizes); n++) {
        struct attention_problem problem;
        struct inspect_result result;
        attention_make(&problem, &sizes[n / 2], 10);
        if (n % 2)
            attention_store(&problem, ATTN_F64, ATTN_F64, ATTN_F64);
        const struct inspect_wants wants = inspect_everything(2);
        test_context("shape %d", (int)n);
        inspect_solve_forward(context, &problem, &wants, &result);
        inspect_solve(context, &problem, &wants, &result);
        for (size_t j = 0; j < result.sums; j++)
            CHECK(sizes[n / 2].queries > 0 ? result.key_sums[j] > 0 : result.key_sums[j] == 0);
        guarded_release_all();
    }
}

int main(void)
{
    isa_each("threads change nothing", threads_change_nothing);
    isa_each_context("what else is asked changes nothing", what_else_is_asked_changes_nothing);
    isa_each_context("strides change nothing", strides_change_nothing);
    isa_each_context("ranges of queries add up", ranges_of_queries_add_up);
    isa_each_context("rows without a key", rows_without_a_key);
    isa_each_context("rows that are no numbers", rows_that_are_no_numbers);
    isa_each_context("packed sequences are apart", packed_sequences_are_apart);
    isa_each_context("nothing to do", nothing_to_do);
    return test_finish();
}
