/* attn_backward against the definition in double precision: sizes around every tile edge, types,
 * layouts, masks, and hundreds of random problems with options of every kind at once. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>

#include "harness/attention_gradient.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/isa.h"
#include "random_problem.h"

enum { PROBLEMS = 800 };

static void check(attn_context *context, const struct attention_problem *problem,
                  const struct gradient_call *call)
{
    struct gradient_result result;
    gradient_solve(context, problem, call, &result);
    CHECK_GRADIENTS(problem, call, &result);
    guarded_release_all();
}

static void check_sizes(attn_context *context, const struct attention_sizes *of, uint64_t seed)
{
    test_context("B %d H %d Hkv %d Lq %d Lk %d d_qk %d d_v %d", (int)of->batch, (int)of->heads,
                 (int)of->key_heads, (int)of->queries, (int)of->keys, (int)of->d_qk, (int)of->d_v);
    struct attention_problem problem;
    struct gradient_call call;
    attention_make(&problem, of, seed);
    problem.side = seed % 2 ? GUARD_BEHIND : GUARD_BEFORE;
    gradient_call_make(&call, &problem, seed + 1);
    check(context, &problem, &call);
}

/* Each size on each axis, the other axes at random. */
static void all_sizes(attn_context *context)
{
    static const int64_t sizes[] = {0,  1,  2,  3,  5,  7,  8,  15,  16,  17,  31,
                                    32, 33, 64, 80, 95, 96, 97, 128, 191, 192, 193};
    struct random_source source = {1};
    for (int axis = 0; axis < 4; axis++) {
        for (size_t n = 0; n < COUNT(sizes); n++) {
            int64_t random[4];
            for (int i = 0; i < 4; i++)
                random[i] = sizes[random_integer(&source, 0, COUNT(sizes) - 1)];
            random[axis] = sizes[n];
            int64_t group = random_integer(&source, 1, 2);
            struct attention_sizes of = {1, group, 1, random[0], random[1], random[2], random[3]};
            if (test_takes_one_in(9))
                check_sizes(context, &of, n);
        }
    }
}

/* Every number of lanes, at keys around the edges of blocks. */
static void every_number_of_lanes(attn_context *context)
{
    static const int64_t keys[] = {1, 4, 12, 95, 96, 97, 191, 192, 193};
    for (int64_t queries = 1; queries <= 33; queries++)
        if (test_takes_one_in(5))
            check_sizes(context,
                        &(struct attention_sizes){1, 1, 1, queries,
                                                  keys[(size_t)queries % COUNT(keys)],
                                                  1 + queries % 9, 1 + queries % 7},
                        (uint64_t)queries);
}

/* Every width, of K and Q and of V and dO. */
static void every_width(attn_context *context)
{
    for (int64_t d = 1; d <= 70; d++)
        if (test_takes_one_in(9))
            check_sizes(context, &(struct attention_sizes){1, 2, 1, 19, 29, d, 71 - d},
                        (uint64_t)d);
}

static void small_sizes(attn_context *context)
{
    struct random_source source = {2};
    for (uint64_t n = 0; n < 300; n++) {
        int64_t key_heads = random_integer(&source, 1, 3);
        struct attention_sizes of = {random_integer(&source, 0, 3),
                                     key_heads * random_integer(&source, 0, 3),
                                     key_heads,
                                     random_integer(&source, 0, 20),
                                     random_integer(&source, 0, 20),
                                     random_integer(&source, 0, 20),
                                     random_integer(&source, 0, 20)};
        if (test_takes_one_in(9))
            check_sizes(context, &of, n);
    }
}

/* Long enough to be cut into chunks of keys, and into several items of queries. */
static void many_keys_and_queries(attn_context *context)
{
    static const struct attention_sizes sizes[] = {
        {1, 1, 1, 3, 5000, 8, 4},   {1, 2, 1, 17, 1031, 33, 9}, {1, 1, 1, 1200, 5, 4, 8},
        {2, 4, 2, 65, 515, 16, 16}, {1, 1, 1, 513, 700, 5, 3},
    };
    for (size_t n = 0; n < COUNT(sizes); n++)
        if (test_takes_one_in(3))
            check_sizes(context, &sizes[n], n);
}

static const struct attention_sizes usual = {2, 4, 2, 45, 131, 17, 12};

/* 16-bit tensors, gradients and outputs, and d_o of f32 beside them. */
static void types(attn_context *context)
{
    static const attn_type of_tensors[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
    for (int which = 0; which < 27; which++)
        for (int output = 0; output < 4; output++) {
            attn_type q = of_tensors[which % 3];
            struct attention_problem problem;
            struct gradient_call call;
            if (!test_takes_one_in(13))
                continue;
            attention_make(&problem, &(struct attention_sizes){1, 4, 2, 37, 99, 9, 6},
                           (uint64_t)which);
            attention_store(&problem, q, of_tensors[which / 3 % 3], of_tensors[which / 9]);
            problem.params.causal = output % 2;
            problem.output_type = output % 2 ? q : ATTN_F32;
            gradient_call_make(&call, &problem, 3);
            call.types = output / 2 ? GRADIENTS_OF_INPUTS : GRADIENTS_F32;
            if (output == 2)
                call.d_o = tensor_convert(&call.d_o, ATTN_F32, LAYOUT_PACKED, GUARD_BEHIND);
            test_context("types %d, output %d", which, output);
            check(context, &problem, &call);
        }
}

/* Products of bf16 pairs where the CPU has them. */
static void bf16_products(attn_context *context)
{
    static const struct attention_sizes sizes[] = {
        {2, 4, 2, 45, 131, 16, 12}, {1, 2, 1, 33, 97, 64, 64}, {1, 1, 1, 7, 200, 17, 5},
        {1, 2, 2, 64, 96, 2, 1},    {1, 1, 1, 1, 1, 1, 1},     {1, 2, 1, 18, 600, 80, 33},
    };
    for (size_t n = 0; n < COUNT(sizes); n++)
        for (int masked = 0; masked < 4; masked++) {
            struct attention_problem problem;
            struct gradient_call call;
            if (!test_takes_one_in(5))
                continue;
            attention_make(&problem, &sizes[n], n);
            attention_store(&problem, ATTN_BF16, ATTN_BF16, ATTN_BF16);
            problem.params.precision = ATTN_PRECISION_BF16;
            problem.params.causal = masked % 2;
            problem.params.dropout = masked / 2 ? 0.25f : 0;
            gradient_call_make(&call, &problem, 3);
            call.types = masked == 1 ? GRADIENTS_OF_INPUTS : GRADIENTS_F32;
            test_context("bf16 products: sizes %zu, masks %d", n, masked);
            check(context, &problem, &call);
        }
}

/* Strides of any sign, 0, and gaps; elements that lie apart. */
static void layouts(attn_context *context)
{
    for (enum layout layout = 0; layout < LAYOUT_INPUTS; layout++)
        for (int type = 0; type < 2; type++) {
            struct attention_problem problem;
            struct gradient_call call;
            attention_make(&problem, &usual, 4);
            attention_add_bias(&problem, (int64_t[]){2, 4, 45, 131}, 5);
            attn_type stored = type ? ATTN_BF16 : ATTN_F32;
            attention_store(&problem, stored, stored, stored);
            problem.params.causal = 1;
            problem.q = tensor_copy(&problem.q, layout, GUARD_BEFORE);
            problem.k = tensor_copy(&problem.k, layout, GUARD_BEHIND);
            problem.v = tensor_copy(&problem.v, layout, GUARD_BEHIND);
            problem.bias = tensor_copy(&problem.bias, layout, GUARD_BEHIND);
            problem.output_layout = layout < LAYOUT_OUTPUTS ? layout : LAYOUT_PADDED;
            gradient_call_make(&call, &problem, 6);
            call.d_o = tensor_copy(&call.d_o, layout, GUARD_BEFORE);
            test_context("layout %d, type %d", (int)layout, (int)stored);
            check(context, &problem, &call);
        }
}

/* Diagonals and windows at, before and behind the edges of tiles. */
static void positions(attn_context *context)
{
    static const int64_t offsets[] = {-40, -16, -1, 0, 1, 15, 32, 64, 95, 96, 97, 150};
    static const int64_t reaches[][2] = {{ATTN_WINDOW_OPEN, 0}, {0, 0}, {3, 2}, {95, 1}, {-1, 97}};
    for (size_t n = 0; n < COUNT(offsets); n++)
        for (size_t r = 0; r < COUNT(reaches); r++) {
            struct attention_problem problem;
            struct gradient_call call;
            if (!test_takes_one_in(13))
                continue;
            attention_make(&problem, &(struct attention_sizes){1, 2, 1, 67, 203, 9, 6}, n);
            problem.params.alignment = ATTN_ALIGN_OFFSET;
            problem.params.offset = offsets[n];
            problem.params.window_left = reaches[r][0];
            problem.params.window_right = reaches[r][1];
            gradient_call_make(&call, &problem, 3);
            test_context("offset %d, window %zu", (int)offsets[n], r);
            check(context, &problem, &call);
        }
}

/* Scores of large size, where weights are 0 and 1. */
static void large_scores(attn_context *context)
{
    static const float scales[] = {0, -1, 3, 30, 1e4f, 1e-20f};
    for (size_t n = 0; n < COUNT(scales); n++) {
        struct attention_problem problem;
        struct gradient_call call;
        attention_make(&problem, &usual, n);
        problem.params.scale = scales[n];
        gradient_call_make(&call, &problem, 3);
        test_context("scale %g", (double)scales[n]);
        check(context, &problem, &call);
    }
}

static void everything_at_once(attn_context *context)
{
    const uint64_t problems = test_is_reduced() ? PROBLEMS / 32 : PROBLEMS;
    for (uint64_t seed = 0; seed < problems; seed++) {
        struct random_source source = {seed};
        struct attention_problem problem, wide;
        struct random_arrays arrays;
        struct gradient_call call;
        random_problem(&source, &problem, &arrays);
        if (problem.k.type == ATTN_I8 || problem.v.type == ATTN_I8) {
            attention_widen(&problem, &wide);
            attention_copy(&wide, &problem);
        }
        gradient_call_make(&call, &problem, random_bits(&source));
        if (problem.q.type != ATTN_F64 && random_one_in(&source, 4))
            call.d_o = tensor_convert(&call.d_o, ATTN_F32, LAYOUT_PACKED, GUARD_BEHIND);
        call.d_o = tensor_copy(
            &call.d_o, (enum layout)random_integer(&source, 0, LAYOUT_INPUTS - 1), problem.side);
        call.types = random_one_in(&source, 2) ? GRADIENTS_F32 : GRADIENTS_OF_INPUTS;
        test_context("seed %d", (int)seed);
        check(context, &problem, &call);
    }
}

int main(void)
{
    isa_each_context("gradients: every size on every axis", all_sizes);
    isa_each_context("gradients: every number of lanes", every_number_of_lanes);
    isa_each_context("gradients: every width", every_width);
    isa_each_context("gradients: small sizes, batches and groups of heads", small_sizes);
    isa_each_context("gradients: many keys and queries", many_keys_and_queries);
    isa_each_context("gradients: types", types);
    isa_each_context("gradients: bf16 products", bf16_products);
    isa_each_context("gradients: layouts", layouts);
    isa_each_context("gradients: positions", positions);
    isa_each_context("gradients: scores of any size", large_scores);
    isa_each_context("gradients: everything at once", everything_at_once);
    printf("# largest error: %.2f of %.0f allowed\n", gradient_largest_error(),
           GRADIENT_ERROR_FACTOR);
    return test_finish();
}
