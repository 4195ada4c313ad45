/* Forward and weights against the definition in double precision, at sizes around every tile edge
 * and at scores of all magnitudes. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>

#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

static const int64_t sizes[] = {0,  1,  2,  3,  5,  7,  8,  15,  16,  17,  31,
                                32, 33, 64, 80, 95, 96, 97, 128, 191, 192, 193};

static void check_sizes(attn_context *context, const struct attention_sizes *of, uint64_t seed)
{
    test_context("B %d H %d Hkv %d Lq %d Lk %d d_qk %d d_v %d", (int)of->batch, (int)of->heads,
                 (int)of->key_heads, (int)of->queries, (int)of->keys, (int)of->d_qk, (int)of->d_v);
    struct attention_problem problem;
    struct attention_result result;
    attention_make(&problem, of, seed);
    problem.side = seed % 2 ? GUARD_BEHIND : GUARD_BEFORE;
    attention_solve(context, &problem, &result);
    CHECK_RESULT(&problem, &result);
    guarded_release_all();
}

/* Each size on each axis, the other axes at random. */
static void all_sizes(attn_context *context)
{
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

static void many_keys(attn_context *context)
{
    check_sizes(context, &(struct attention_sizes){1, 1, 1, 3, 5000, 8, 4}, 1);
    check_sizes(context, &(struct attention_sizes){1, 2, 1, 17, 1031, 33, 9}, 2);
}

/* Scores of exactly the values of k, which lie in low..high. */
static void check_score_range(attn_context *context, float low, float high)
{
    test_context("scores in %g..%g", (double)low, (double)high);
    struct attention_problem problem;
    struct attention_result result;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, 19, 213, 1, 7}, 3);
    struct random_source source = {4};
    problem.params.scale = 1;
    tensor_fill(&problem.q, 1);
    tensor_fill_random(&problem.k, &source, low, high);
    attention_solve(context, &problem, &result);
    CHECK_RESULT(&problem, &result);

    /* These scores are not rounded, so neither is the largest of them. */
    float largest = -INFINITY;
    for (int64_t j = 0; j < 213; j++)
        largest = fmaxf(largest, (float)tensor_get(&problem.k, 0, 0, j, 0));
    for (size_t row = 0; row < result.rows; row++)
        CHECK_WITHIN(result.stats[2 * row], largest, 0);
    guarded_release_all();
}

static void scores_of_all_magnitudes(attn_context *context)
{
    const float ranges[][2] = {{90, 100},          {-100, -90},       {-100, 100},
                               {-1e4f, 1e4f},      {-1e30f, 1e30f},   {-3.4e38f, -3.3e38f},
                               {3.3e38f, 3.4e38f}, {-1e-30f, 1e-30f}, {-20001, -20000}};
    for (size_t n = 0; n < COUNT(ranges); n++)
        check_score_range(context, ranges[n][0], ranges[n][1]);
}

/* The maximum of a row may come with its first key, its last, or rise with every block. */
static void maximum_anywhere(attn_context *context)
{
    enum { KEYS = 300 };
    for (int where = 0; where < KEYS + 2; where++) {
        struct attention_problem problem;
        struct attention_result result;
        if (where < KEYS && !test_takes_one_in(29))
            continue;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 2, KEYS, 1, 3}, 5);
        problem.params.scale = 1;
        for (int64_t j = 0; j < KEYS; j++) {
            float score = j == where ? 30 : 0;
            if (where >= KEYS)
                score = (float)(where == KEYS ? j : KEYS - j) / 4;
            tensor_set(&problem.k, 0, 0, j, 0, score);
        }
        tensor_set(&problem.q, 0, 0, 0, 0, 1);
        tensor_set(&problem.q, 0, 0, 1, 0, -1);
        attention_solve(context, &problem, &result);
        test_context("the maximum at key %d", where);
        CHECK_RESULT(&problem, &result);
        guarded_release_all();
    }
}

static void any_scale(attn_context *context)
{
    const float scales[] = {0, -0.0f, -1, 1, 0.125f, -2.5f, 1e-20f};
    for (size_t n = 0; n < COUNT(scales); n++) {
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &(struct attention_sizes){1, 2, 2, 9, 31, 5, 3}, n);
        problem.params.scale = scales[n];
        attention_solve(context, &problem, &result);
        test_context("scale %g", (double)scales[n]);
        CHECK_RESULT(&problem, &result);
        if (scales[n] == 0)
            for (size_t i = 0; i < result.weight_count; i++)
                CHECK_WITHIN(result.weights[i], 1.0 / 31, 0x1p-24);
    }
}

/* d_qk alone sets the default scale. */
static void default_scale(attn_context *context)
{
    for (int64_t d = 1; d < 200; d += 13) {
        struct attention_problem problem;
        struct attention_result by_default, given;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, 5, 9, d, 200 - d}, 6);
        attention_solve(context, &problem, &by_default);
        problem.params.scale = (float)(1 / sqrt((double)d));
        attention_solve(context, &problem, &given);
        test_context("d_qk %d", (int)d);
        CHECK_SAME_RESULT(&by_default, &given);
        problem.params.scale = (float)(1 / sqrt(200 - (double)d));
        attention_solve(context, &problem, &given);
        CHECK(d == 105 || by_default.o[0] != given.o[0]);
    }
}

static void no_params_are_the_defaults(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result with_params;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, 5, 9, 4, 3}, 7);
    attention_solve(context, &problem, &with_params);
    attn_tensor o = tensor_allocate(ATTN_F32, 1, 1, 5, 3, LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(attn_forward(context, NULL, &problem.q, &problem.k, &problem.v, &o, NULL),
                ATTN_SUCCESS);
    CHECK_SAME_BITS((const float *)o.data, with_params.o, with_params.outputs);
}

/* A NULL view, as an empty tensor may be. */
static void empty_tensors_without_data(attn_context *context)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, 3, 0, 2, 4}, 8);
    problem.k.data = problem.v.data = NULL;
    struct attention_result result;
    attention_solve(context, &problem, &result);
    CHECK_ALL(result.o, 0, result.outputs);
    for (size_t row = 0; row < result.rows; row++)
        CHECK(result.stats[2 * row] == -INFINITY && result.stats[2 * row + 1] == 0);
    attn_tensor nothing = attn_tensor_packed(NULL, ATTN_F32, 0, 1, 3, 2);
    CHECK_EQUAL(attn_forward(context, NULL, &nothing, &nothing, &nothing, &nothing, NULL),
                ATTN_SUCCESS);
}

int main(void)
{
    isa_each_context("every size on every axis", all_sizes);
    isa_each_context("small sizes, batches and groups of heads", small_sizes);
    isa_each_context("many keys", many_keys);
    isa_each_context("scores of all magnitudes", scores_of_all_magnitudes);
    isa_each_context("the maximum at any key", maximum_anywhere);
    isa_each_context("any scale", any_scale);
    isa_each_context("the default scale comes from d_qk", default_scale);
    isa_each_context("params NULL are the defaults", no_params_are_the_defaults);
    isa_each_context("empty tensors need no data", empty_tensors_without_data);
    printf("# largest error: %.2f of %.0f allowed\n", attention_largest_error(),
           ATTENTION_ERROR_FACTOR);
    return test_finish();
}
