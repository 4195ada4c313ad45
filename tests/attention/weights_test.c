/* Rebuilt weights: rows that sum to one, any part on its own, and P·V = O. */
#include "harness/test.h"

#include <math.h>

#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

static double row_sum(const float *weights, int64_t keys)
{
    double sum = 0;
    for (int64_t j = 0; j < keys; j++)
        sum += weights[j];
    return sum;
}

static void rows_sum_to_one(attn_context *context)
{
    const int64_t key_counts[] = {1, 2, 95, 96, 97, 500, 5000};
    const float sizes[] = {0, 1, 10, 100};
    for (size_t a = 0; a < COUNT(key_counts); a++) {
        for (size_t b = 0; b < COUNT(sizes); b++) {
            struct attention_problem problem;
            struct attention_result result;
            int64_t keys = key_counts[a];
            attention_make(&problem, &(struct attention_sizes){1, 1, 1, 18, keys, 3, 1}, a);
            struct random_source source = {b};
            /* q·k up to 3·sizes², which is 3e4. */
            tensor_fill_random(&problem.q, &source, -sizes[b], sizes[b]);
            tensor_fill_random(&problem.k, &source, -sizes[b], sizes[b]);
            problem.params.scale = 1;
            attention_solve(context, &problem, &result);
            test_context("%d keys, elements up to %g", (int)keys, (double)sizes[b]);
            for (size_t row = 0; row < result.rows; row++)
                CHECK_WITHIN(row_sum(result.weights + row * (size_t)keys, keys), 1, 1e-6);
            guarded_release_all();
        }
    }
}

/* Scores whose spacing as floats is far coarser than a weight needs: m and l must meet the very
 * bits that the forward saw. */
static void rows_sum_to_one_far_out(attn_context *context)
{
    const float levels[] = {1e4f, -1e4f, 1e6f, -1e6f};
    for (size_t n = 0; n < COUNT(levels); n++) {
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 21, 700, 37, 3}, n);
        attention_add_bias(&problem, (int64_t[]){1, 1, 21, 700}, n);
        float *bias = problem.bias.data;
        for (size_t i = 0; i < tensor_elements(&problem.bias); i++)
            bias[i] += levels[n];
        attention_solve(context, &problem, &result);
        test_context("around %g", (double)levels[n]);
        for (size_t row = 0; row < result.rows; row++)
            CHECK_WITHIN(row_sum(result.weights + row * 700, 700), 1, 1e-6);
        guarded_release_all();
    }
}

enum { BATCH = 2, HEADS = 4, QUERIES = 35, KEYS = 207, D_V = 6 };

static void make_masked(struct attention_problem *problem)
{
    attention_make(problem, &(struct attention_sizes){BATCH, HEADS, 2, QUERIES, KEYS, 7, D_V}, 3);
    attention_add_keep(problem, (int64_t[]){BATCH, 1, QUERIES, KEYS}, 4, 4);
    attention_add_bias(problem, (int64_t[]){1, HEADS, 1, KEYS}, 5);
    problem->params.causal = 1;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    problem->params.window_left = 120;
    problem->params.soft_cap = 3;
}

static void any_part_equals_the_whole(attn_isa isa)
{
    attn_context *context = isa_context(isa, 2);
    struct attention_problem problem;
    struct attention_result all;
    make_masked(&problem);
    attention_solve(context, &problem, &all);
    attn_tensor whole = attn_tensor_packed(all.weights, ATTN_F32, BATCH, HEADS, QUERIES, KEYS);
    attn_tensor stats = attn_tensor_packed(all.stats, ATTN_F32, BATCH, HEADS, QUERIES, 2);
    struct random_source source = {6};
    for (int round = 0; round < 300; round++) {
        int64_t begin[4], count[4];
        for (int axis = 0; axis < 4; axis++) {
            begin[axis] = random_integer(&source, 0, whole.shape[axis]);
            count[axis] = random_integer(&source, 0, whole.shape[axis] - begin[axis]);
        }
        attn_tensor part = tensor_allocate(
            ATTN_F32, count[0], count[1], count[2], count[3],
            (enum layout)random_integer(&source, 0, LAYOUT_OUTPUTS - 1), GUARD_BEHIND);
        test_context("round %d: from %d %d %d %d, %d %d %d %d", round, (int)begin[0], (int)begin[1],
                     (int)begin[2], (int)begin[3], (int)count[0], (int)count[1], (int)count[2],
                     (int)count[3]);
        CHECK_EQUAL(
            attn_weights(context, &problem.params, &problem.q, &problem.k, &stats, begin, &part),
            ATTN_SUCCESS);
        attn_tensor expected = whole;
        for (int axis = 0; axis < 4; axis++)
            expected = tensor_part(&expected, axis, begin[axis], count[axis]);
        CHECK_SAME_BITS(tensor_packed_copy(&part), tensor_packed_copy(&expected),
                        tensor_elements(&part));
    }
    attn_context_destroy(context);
}

/* |Σ p·v − o| ≤ c·ε·Σ p|v|: exp, the division and the sums are rounded, the scores are the same. */
static void weights_times_values_are_the_output(attn_context *context)
{
    const double c = 16;
    struct attention_problem problem;
    struct attention_result result;
    make_masked(&problem);
    attention_solve(context, &problem, &result);
    for (size_t row = 0; row < result.rows; row++) {
        int64_t b = (int64_t)row / (HEADS * QUERIES), h = (int64_t)row / QUERIES % HEADS;
        for (int64_t column = 0; column < D_V; column++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j < KEYS; j++) {
                double p = result.weights[row * KEYS + (size_t)j];
                double v = tensor_get(&problem.v, b, h / 2, j, column);
                sum += p * v;
                size += p * fabs(v);
            }
            test_context("row %zu", row);
            CHECK_WITHIN(result.o[row * D_V + (size_t)column], sum, c * 0x1p-24 * size);
        }
    }
}

static void a_sink_takes_its_share(attn_context *context)
{
    const float levels[] = {-90, -1, 0, 5, 90};
    for (size_t n = 0; n < COUNT(levels); n++) {
        const float sinks[] = {levels[n]};
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 17, 101, 4, 2}, 7);
        problem.params.sinks = sinks;
        attention_solve(context, &problem, &result);
        test_context("sink %g", (double)levels[n]);
        CHECK_RESULT(&problem, &result);
        for (size_t row = 0; row < result.rows; row++) {
            const float *stats = result.stats + 2 * row;
            double share = exp((double)levels[n] - stats[0]) / stats[1];
            CHECK(stats[0] >= levels[n]);
            CHECK_WITHIN(row_sum(result.weights + row * 101, 101), 1 - share, 1e-6);
        }
    }
}

static void excluded_weights_are_exactly_zero(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result result;
    make_masked(&problem);
    attention_solve(context, &problem, &result);
    CHECK_RESULT(&problem, &result);
    size_t excluded = 0;
    for (size_t i = 0; i < result.weight_count; i++) {
        int64_t n = (int64_t)i;
        if (reference_keeps(&problem.params, n / (HEADS * QUERIES * KEYS),
                            n / (QUERIES * KEYS) % HEADS, n / KEYS % QUERIES, n % KEYS, QUERIES,
                            KEYS))
            continue;
        excluded++;
        CHECK(result.weights[i] == 0);
    }
    CHECK(excluded > 0);
}

int main(void)
{
    isa_each_context("rows sum to one", rows_sum_to_one);
    isa_each_context("rows sum to one far out", rows_sum_to_one_far_out);
    isa_each("any part equals the whole", any_part_equals_the_whole);
    isa_each_context("weights times values are the output", weights_times_values_are_the_output);
    isa_each_context("a sink takes its share", a_sink_takes_its_share);
    isa_each_context("excluded weights are exactly zero", excluded_weights_are_exactly_zero);
    return test_finish();
}
