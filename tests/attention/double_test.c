/* Tensors of f64: everything that f32 can do, with the error of doubles. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "attention_call.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

static const struct attention_sizes small = {2, 4, 2, 13, 131, 7, 5};

static void make(struct attention_problem *problem, const struct attention_sizes *sizes,
                 uint64_t seed)
{
    attention_make(problem, sizes, seed);
    attention_store(problem, ATTN_F64, ATTN_F64, ATTN_F64);
}

/* All three calls against the reference, and decode against forward bit by bit. */
static void check(attn_context *context, const struct attention_problem *problem, const char *what)
{
    struct attention_result result, decoded;
    test_context("%s", what);
    attention_solve(context, problem, &result);
    CHECK_RESULT(problem, &result);
    attention_solve_decode(context, problem, &decoded);
    CHECK(memcmp(decoded.exact_o, result.exact_o, result.outputs * sizeof(double)) == 0);
    CHECK(memcmp(decoded.exact_stats, result.exact_stats, 2 * result.rows * sizeof(double)) == 0);
}

/* Far below what f32 could give. */
static void dense_to_the_last_digits(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result result;
    struct reference_attention right;
    make(&problem, &small, 1);
    attention_solve(context, &problem, &result);
    reference_attention(&problem.params, &problem.q, &problem.k, &problem.v, &right);
    for (size_t i = 0; i < result.outputs; i++)
        CHECK_WITHIN(result.exact_o[i], right.o[i], 1e-14);
    for (size_t i = 0; i < result.weight_count; i++)
        CHECK_WITHIN(result.exact_weights[i], right.weights[i], 1e-14);
    for (size_t row = 0; row < result.rows; row++) {
        CHECK_WITHIN(result.exact_stats[2 * row], right.m[row], 1e-13);
        CHECK_WITHIN(result.exact_stats[2 * row + 1], right.l[row], 1e-12);
    }
}

static void every_size(attn_context *context)
{
    static const struct attention_sizes sizes[] = {
        {1, 1, 1, 1, 1, 1, 1},  {1, 1, 1, 3, 0, 4, 4}, {1, 2, 1, 5, 96, 64, 64},
        {1, 2, 1, 5, 97, 3, 0}, {2, 0, 3, 4, 5, 6, 7}, {1, 1, 1, 0, 5, 6, 7},
        {0, 2, 2, 4, 5, 6, 7},
    };
    for (size_t n = 0; n < COUNT(sizes); n++) {
        struct attention_problem problem;
        make(&problem, &sizes[n], n);
        check(context, &problem, "size");
    }
    struct attention_problem problem;
    make(&problem, &(struct attention_sizes){1, 2, 2, 3, 4, 0, 5}, 2);
    problem.params.scale = 1;
    check(context, &problem, "d_qk = 0");
}

static void masks_and_edits(attn_context *context)
{
    static const int64_t lengths[] = {100, 0}, prefixes[] = {20, 5};
    static const float slopes[] = {0.5f, 0.25f, 0.125f, 0}, sinks[] = {0.5f, -INFINITY, 3, -2};
    struct attention_problem problem;
    make(&problem, &small, 3);
    problem.params.scale = -0.7f;
    problem.params.soft_cap = 3;
    check(context, &problem, "scale and soft cap");
    problem.params.alibi_slopes = slopes;
    problem.params.sinks = sinks;
    check(context, &problem, "ALiBi and sinks");
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    problem.params.window_left = 40;
    check(context, &problem, "causal and window");
    problem.params.prefix_lengths = prefixes;
    check(context, &problem, "prefix");
    problem.params.key_lengths = lengths;
    check(context, &problem, "lengths");
    attention_add_keep(&problem, (int64_t[]){2, 1, 13, 131}, 4, 3);
    check(context, &problem, "keep");
    attention_add_documents(&problem, 60, 5);
    check(context, &problem, "documents");

    static const attn_type types[] = {ATTN_F64, ATTN_F32, ATTN_F16, ATTN_BF16};
    for (size_t n = 0; n < COUNT(types); n++) {
        attention_add_bias(&problem, (int64_t[]){1, 4, 13, 131}, 6);
        tensor_set(&problem.bias, 0, 1, 4, 17, -INFINITY);
        attention_store_bias(&problem, types[n]);
        check(context, &problem, "bias");
    }
}

static void packed_sequences_and_pages(attn_context *context)
{
    struct attention_problem problem, paged;
    make(&problem, &(struct attention_sizes){1, 4, 2, 20, 150, 6, 3}, 7);
    attention_add_sequences(&problem, 4, (int64_t[]){5, 0, 9, 3}, (int64_t[]){100, 7, 0, 40});
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    check(context, &problem, "packed sequences");
    attention_page(&problem, 16, 8, &paged);
    check(context, &paged, "packed sequences in pages");
    attention_add_keep(&problem, (int64_t[]){1, 1, 20, 150}, 9, 3);
    attention_add_documents(&problem, 30, 10);
    check(context, &problem, "packed sequences, keep and documents");

    make(&problem, &small, 11);
    attention_page(&problem, 1, 12, &paged);
    check(context, &paged, "pages of one key");
}

/* Parts of the weights are the same numbers. */
static void parts_of_the_weights(attn_context *context)
{
    enum { QUERIES = 9, KEYS = 120 };
    struct attention_problem problem;
    struct attention_result result;
    make(&problem, &(struct attention_sizes){1, 4, 2, 20, 150, 6, 3}, 13);
    attention_add_sequences(&problem, 3, (int64_t[]){5, 9, 3}, (int64_t[]){60, 50, 40});
    attention_solve(context, &problem, &result);

    attn_tensor stats = attn_tensor_packed(result.exact_stats, ATTN_F64, 1, 4, 20, 2);
    attn_tensor part =
        tensor_allocate(ATTN_F64, 1, 2, QUERIES, KEYS, LAYOUT_TRANSPOSED, GUARD_BEHIND);
    const int64_t begin[4] = {0, 1, 4, 25};
    CHECK_EQUAL(
        attn_weights(context, &problem.params, &problem.q, &problem.k, &stats, begin, &part),
        ATTN_SUCCESS);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t i = 0; i < QUERIES; i++)
            for (int64_t j = 0; j < KEYS; j++) {
                int64_t row = (begin[1] + h) * 20 + begin[2] + i;
                CHECK(tensor_get(&part, 0, h, i, j) ==
                      result.exact_weights[row * 150 + begin[3] + j]);
            }
}

/* Adds to the scores of even keys and excludes every fifth. */
static void change_some(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            float *s = &tile->scores[i * tile->query_stride + j * tile->key_stride];
            int64_t key = tile->key + j;
            if (key % 2 == 0)
                *s += 0.25f * (float)(tile->head + (tile->query + i) % 3);
            if (key % 5 == 0)
                *s = -INFINITY;
        }
}

static void narrow_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                         int64_t *begin, int64_t *end)
{
    (void)user;
    (void)head;
    (void)queries;
    *begin = query;
    *end = *end < 110 + sequence ? *end : 110 + sequence;
}

/* Changed scores are f32, so the whole is as good as f32 only. */
static void callbacks(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result result;
    struct reference_attention right;
    make(&problem, &small, 14);
    attention_add_keep(&problem, (int64_t[]){1, 1, 13, 131}, 15, 4);
    problem.params.change_scores = change_some;
    attention_solve(context, &problem, &result);
    reference_attention(&problem.params, &problem.q, &problem.k, &problem.v, &right);
    for (size_t i = 0; i < result.outputs; i++)
        CHECK_WITHIN(result.exact_o[i], right.o[i], 1e-6);
    for (size_t i = 0; i < result.weight_count; i++)
        if (right.weights[i] == 0)
            CHECK_WITHIN(result.exact_weights[i], 0, 0);

    problem.params.change_scores = NULL;
    problem.params.key_range = narrow_range;
    check(context, &problem, "key range");
}

/* NaN and infinity where nothing is kept change nothing; where they are kept they spoil their rows
 * and no other. */
static void nan_and_infinity(attn_context *context)
{
    static const int64_t lengths[] = {100, 131};
    struct attention_problem problem;
    struct attention_result clean, result;
    make(&problem, &small, 16);
    problem.params.key_lengths = lengths;
    attention_solve(context, &problem, &clean);
    for (int64_t h = 0; h < small.key_heads; h++)
        for (int64_t j = lengths[0]; j < small.keys; j++)
            for (int64_t c = 0; c < small.d_v; c++) {
                tensor_set(&problem.k, 0, h, j, c, NAN);
                tensor_set(&problem.v, 0, h, j, c, INFINITY);
            }
    attention_solve(context, &problem, &result);
    CHECK(memcmp(result.exact_o, clean.exact_o, clean.outputs * sizeof(double)) == 0);
    CHECK(memcmp(result.exact_weights, clean.exact_weights, clean.weight_count * sizeof(double)) ==
          0);

    tensor_set(&problem.q, 1, 2, 3, 0, NAN);
    tensor_set(&problem.v, 1, 1, 7, 2, INFINITY);
    check(context, &problem, "kept NaN and infinity");
}

static void any_layout(attn_context *context)
{
    struct attention_problem problem, packed;
    struct attention_result result, same;
    for (enum layout layout = 0; layout < LAYOUT_INPUTS; layout++) {
        make(&problem, &small, 17);
        attention_add_bias(&problem, (int64_t[]){2, 4, 13, 131}, 18);
        problem.q = tensor_copy(&problem.q, layout, GUARD_BEFORE);
        problem.k = tensor_copy(&problem.k, layout, GUARD_BEHIND);
        problem.v = tensor_copy(&problem.v, layout, GUARD_BEHIND);
        problem.bias = tensor_convert(&problem.bias, ATTN_F64, layout, GUARD_BEHIND);
        attention_copy(&problem, &packed);
        packed.q = tensor_copy(&problem.q, LAYOUT_PACKED, GUARD_BEHIND);
        packed.k = tensor_copy(&problem.k, LAYOUT_PACKED, GUARD_BEHIND);
        packed.v = tensor_copy(&problem.v, LAYOUT_PACKED, GUARD_BEHIND);
        packed.bias = tensor_copy(&problem.bias, LAYOUT_PACKED, GUARD_BEHIND);
        problem.output_layout = layout < LAYOUT_OUTPUTS ? layout : LAYOUT_PADDED;
        test_context("layout %d", (int)layout);
        attention_solve(context, &problem, &result);
        attention_solve(context, &packed, &same);
        CHECK(memcmp(result.exact_o, same.exact_o, same.outputs * sizeof(double)) == 0);
        CHECK(memcmp(result.exact_stats, same.exact_stats, 2 * same.rows * sizeof(double)) == 0);
        CHECK(memcmp(result.exact_weights, same.exact_weights,
                     same.weight_count * sizeof(double)) == 0);
    }
}

static void threads_change_nothing(const void *argument)
{
    (void)argument;
    struct attention_problem problem;
    struct attention_result one, many;
    make(&problem, &small, 19);
    problem.params.causal = 1;
    attn_context *alone = isa_context(ATTN_ISA_BEST, 1), *four = isa_context(ATTN_ISA_BEST, 4);
    attention_solve(alone, &problem, &one);
    attention_solve(four, &problem, &many);
    CHECK(memcmp(one.exact_o, many.exact_o, one.outputs * sizeof(double)) == 0);
    CHECK(memcmp(one.exact_weights, many.exact_weights, one.weight_count * sizeof(double)) == 0);
    attn_context_destroy(alone);
    attn_context_destroy(four);
}

int main(void)
{
    isa_each_context("f64: dense, to the last digits", dense_to_the_last_digits);
    isa_each_context("f64: every size", every_size);
    isa_each_context("f64: masks and edits", masks_and_edits);
    isa_each_context("f64: packed sequences and pages", packed_sequences_and_pages);
    isa_each_context("f64: parts of the weights", parts_of_the_weights);
    isa_each_context("f64: callbacks", callbacks);
    isa_each_context("f64: NaN and infinity", nan_and_infinity);
    isa_each_context("f64: any layout", any_layout);
    test_run(threads_change_nothing, NULL, "f64: threads change nothing");
    return test_finish();
}
