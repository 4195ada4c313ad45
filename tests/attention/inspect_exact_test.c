/* Lists of the largest weights where scores are whole numbers, of which many are equal: order and
 * keys must be exact. And the tolerances that inspection promises on small shapes. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"
#include "inspect_call.h"

struct entry {
    double score;
    int64_t key;
};

static int best_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Whole numbers within ±limit: scores are exact in f32 and in f64. */
static void fill_whole(const attn_tensor *tensor, struct random_source *source, int64_t limit)
{
    float *numbers = tensor->data;
    for (size_t i = 0; i < tensor_elements(tensor); i++)
        numbers[i] = (float)random_integer(source, -limit, limit);
}

static void check_lists(const struct attention_problem *problem,
                        const struct inspect_result *result)
{
    const int64_t keys = problem->k.shape[2], top = result->top;
    struct reference_row row = {.score = guarded_doubles((size_t)keys),
                                .magnitude = guarded_doubles((size_t)keys),
                                .tile = guarded_floats((size_t)keys, GUARD_BEHIND)};
    struct entry *entries = guarded_bytes((size_t)keys * sizeof *entries, 16, GUARD_BEHIND);
    const int64_t queries = problem->q.shape[2], heads = problem->q.shape[1];
    for (size_t n = 0; n < result->rows; n++) {
        const int64_t i = (int64_t)n % queries;
        row.head = (int64_t)n / queries % heads;
        row.sequence =
            reference_sequence_of(&problem->params, (int64_t)n / queries / heads, i, queries, keys);
        row.query = i - row.sequence.query_begin;
        reference_score_row(&problem->params, &problem->q, &problem->k, &row);
        int64_t kept = 0;
        for (int64_t j = 0; j < keys; j++)
            if (row.score[j] != -INFINITY)
                entries[kept++] = (struct entry){row.score[j], j};
        qsort(entries, (size_t)kept, sizeof *entries, best_first);
        for (int64_t t = 0; t < top; t++)
            CHECK_EQUAL(result->top_keys[n * (size_t)top + (size_t)t],
                        t < kept ? entries[t].key : -1);
    }
}

static void solve_and_check(attn_context *context, const struct attention_problem *problem,
                            int64_t top)
{
    struct inspect_wants wants = {.top = top, .query_end = INT64_MAX};
    struct inspect_result result;
    inspect_solve_forward(context, problem, &wants, &result);
    check_lists(problem, &result);
    inspect_solve(context, problem, &wants, &result);
    check_lists(problem, &result);
}

static void sets_are_exact(attn_context *context)
{
    static const int64_t tops[] = {1, 2, 4, 7, 8, 9, 15, 16, 17, 33, 64};
    static const int64_t key_counts[] = {1, 5, 64, 95, 96, 97, 300, 1000};
    for (size_t a = 0; a < COUNT(tops); a++)
        for (size_t b = 0; b < COUNT(key_counts); b++) {
            if (!test_takes_one_in(9))
                continue;
            /* Few different scores, with all keys equal among them; and nearly all different. */
            static const int64_t limits[] = {0, 1, 40};
            for (size_t c = 0; c < COUNT(limits); c++) {
                struct random_source source = {a * 100 + b};
                struct attention_problem problem;
                attention_make(&problem,
                               &(struct attention_sizes){1, 2, 1, 37, key_counts[b], 3, 2}, a);
                problem.params.scale = 1;
                problem.params.causal = (int)(b % 2);
                problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
                fill_whole(&problem.q, &source, limits[c]);
                fill_whole(&problem.k, &source, limits[c]);
                test_context("top %d of %d keys, numbers within %d", (int)tops[a],
                             (int)key_counts[b], (int)limits[c]);
                solve_and_check(context, &problem, tops[a]);
                if (limits[c] == 1 && key_counts[b] <= 300) {
                    test_context("the same in f64, top %d of %d keys", (int)tops[a],
                                 (int)key_counts[b]);
                    attention_store(&problem, ATTN_F64, ATTN_F64, ATTN_F64);
                    solve_and_check(context, &problem, tops[a]);
                }
                guarded_release_all();
            }
        }
}

/* A rising score enters every list with every key, a falling one with none. */
static void any_order_of_scores(attn_context *context)
{
    enum { KEYS = 400 };
    for (int order = -1; order <= 1; order++) {
        struct attention_problem problem;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 33, KEYS, 1, 1}, 3);
        problem.params.scale = 1;
        float *q = problem.q.data, *k = problem.k.data;
        for (int64_t i = 0; i < 33; i++)
            q[i] = (float)(i % 3 - 1);
        for (int64_t j = 0; j < KEYS; j++)
            k[j] = (float)(order ? order * j : j % 7);
        test_context("order %d", order);
        solve_and_check(context, &problem, 8);
        solve_and_check(context, &problem, 20);
        guarded_release_all();
    }
}

static void packed_rows_are_those_of_the_tensor(attn_context *context)
{
    struct attention_problem problem;
    struct random_source source = {9};
    attention_make(&problem, &(struct attention_sizes){1, 2, 2, 60, 300, 4, 3}, 5);
    problem.params.scale = 0.5f;
    fill_whole(&problem.q, &source, 2);
    fill_whole(&problem.k, &source, 2);
    attention_add_sequences(&problem, 4, (int64_t[]){17, 0, 1, 34}, (int64_t[]){110, 20, 3, 150});
    solve_and_check(context, &problem, 5);
}

/* The promise: entropy and sums within 1e-5 of the whole matrix in double precision. */
static void small_shapes_are_within_the_promise(attn_context *context)
{
    enum { QUERIES = 150, KEYS = 200, HEADS = 3 };
    for (int causal = 0; causal < 2; causal++) {
        struct attention_problem problem;
        struct reference_attention right;
        struct inspect_result result;
        attention_make(&problem, &(struct attention_sizes){1, HEADS, 1, QUERIES, KEYS, 64, 8}, 11);
        problem.params.causal = causal;
        reference_attention(&problem.params, &problem.q, &problem.k, &problem.v, &right);
        struct inspect_wants wants = inspect_everything(8);
        inspect_solve_forward(context, &problem, &wants, &result);
        for (size_t n = 0; n < result.rows; n++) {
            double entropy = 0;
            for (size_t j = 0; j < KEYS; j++) {
                double p = right.weights[n * KEYS + j];
                entropy -= p > 0 ? p * log(p) : 0;
            }
            CHECK_WITHIN(result.entropy[n], entropy, 1e-5);
        }
        for (size_t n = 0; n < result.sums; n++) {
            double sum = 0;
            for (size_t i = 0; i < QUERIES; i++)
                sum += right.weights[(n / KEYS * QUERIES + i) * KEYS + n % KEYS];
            CHECK_WITHIN(result.key_sums[n], sum, 1e-5);
        }
        guarded_release_all();
    }
}

/* Thousands of keys and queries: sums of a row and of a column lose nothing that shows. */
static void long_rows_are_as_good(attn_context *context)
{
    enum { LENGTH = 3000 };
    const int64_t length = test_is_reduced() ? 300 : LENGTH;
    struct attention_problem problem;
    struct inspect_result result;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, length, length, 4, 1}, 12);
    /* Equal scores: entropy ln L, and each key receives 1. */
    tensor_fill(&problem.q, 0);
    struct inspect_wants wants = inspect_everything(1);
    inspect_solve(context, &problem, &wants, &result);
    for (size_t n = 0; n < (size_t)length; n++) {
        CHECK_WITHIN(result.entropy[n], log((double)length), 1e-6);
        CHECK_WITHIN(result.key_sums[n], 1, 1e-6);
        CHECK_WITHIN(result.maximum[n], 1.0 / (double)length, 1e-7 / (double)length);
        CHECK_EQUAL(result.top_keys[n], 0);
    }
}

int main(void)
{
    isa_each_context("sets are exact", sets_are_exact);
    isa_each_context("any order of scores", any_order_of_scores);
    isa_each_context("packed rows are those of the tensor", packed_rows_are_those_of_the_tensor);
    isa_each_context("small shapes are within the promise", small_shapes_are_within_the_promise);
    isa_each_context("long rows are as good", long_rows_are_as_good);
    return test_finish();
}
