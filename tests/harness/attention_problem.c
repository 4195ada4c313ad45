#include "harness/attention_problem.h"

#include <math.h>

#include "harness/compare.h"
#include "harness/test.h"

void attention_make(struct attention_problem *problem, const struct attention_sizes *sizes,
                    uint64_t seed)
{
    struct random_source source = {seed};
    *problem = (struct attention_problem){.output_layout = LAYOUT_PACKED, .side = GUARD_BEHIND};
    attn_params_init(&problem->params);
    problem->q = tensor_allocate(ATTN_F32, sizes->batch, sizes->heads, sizes->queries, sizes->d_qk,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    problem->k = tensor_allocate(ATTN_F32, sizes->batch, sizes->key_heads, sizes->keys, sizes->d_qk,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    problem->v = tensor_allocate(ATTN_F32, sizes->batch, sizes->key_heads, sizes->keys, sizes->d_v,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    tensor_fill_random(&problem->q, &source, -2, 2);
    tensor_fill_random(&problem->k, &source, -2, 2);
    tensor_fill_random(&problem->v, &source, -1, 1);
    if (sizes->d_qk == 0)
        problem->params.scale = 1;
}

void attention_add_keep(struct attention_problem *problem, const int64_t shape[4], uint64_t seed,
                        int64_t one_in)
{
    struct random_source source = {seed};
    problem->keep = tensor_allocate(ATTN_BOOL, shape[0], shape[1], shape[2], shape[3],
                                    LAYOUT_PACKED, GUARD_BEHIND);
    unsigned char *keep = problem->keep.data;
    for (size_t i = 0; i < tensor_elements(&problem->keep); i++)
        keep[i] = (unsigned char)(random_integer(&source, 1, one_in) == 1
                                      ? 0
                                      : random_integer(&source, 1, 255));
    problem->params.keep = &problem->keep;
}

void attention_add_bias(struct attention_problem *problem, const int64_t shape[4], uint64_t seed)
{
    struct random_source source = {seed};
    problem->bias = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], shape[3], LAYOUT_PACKED,
                                    GUARD_BEHIND);
    tensor_fill_random(&problem->bias, &source, -2, 2);
    problem->params.bias = &problem->bias;
}

void attention_solve(attn_context *context, const struct attention_problem *problem,
                     struct attention_result *result)
{
    const int64_t *shape = problem->q.shape;
    int64_t keys = problem->k.shape[2], d_v = problem->v.shape[3];
    attn_tensor o = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], d_v,
                                    problem->output_layout, problem->side);
    attn_tensor stats = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], 2,
                                        problem->output_layout, problem->side);
    attn_tensor weights = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], keys,
                                          problem->output_layout, problem->side);
    attn_status status =
        attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o, &stats);
    if (status == ATTN_SUCCESS)
        status = attn_weights(context, &problem->params, &problem->q, &problem->k, &stats, NULL,
                              &weights);
    if (status != ATTN_SUCCESS)
        test_fail(__FILE__, __LINE__, "status %d: %s", (int)status, attn_message(context));
    *result = (struct attention_result){
        .o = tensor_packed_copy(&o),
        .stats = tensor_packed_copy(&stats),
        .weights = tensor_packed_copy(&weights),
        .rows = (size_t)(shape[0] * shape[1] * shape[2]),
        .outputs = tensor_elements(&o),
        .weight_count = tensor_elements(&weights),
    };
}

static double largest_error;

double attention_largest_error(void)
{
    return largest_error;
}

static void remember_largest_error(const float *actual, const double *expected, const double *error,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(expected[i]) && error[i] > 0)
            largest_error = fmax(largest_error, fabs(actual[i] - expected[i]) / error[i]);
}

void attention_check_result(const char *file, int line, const struct attention_problem *problem,
                            const struct attention_result *result)
{
    struct reference_attention right;
    reference_attention(&problem->params, &problem->q, &problem->k, &problem->v, &right);
    compare_near(file, line, "o", result->o, right.o, ATTENTION_ERROR_FACTOR, right.o_error,
                 result->outputs);
    compare_near(file, line, "weights", result->weights, right.weights, ATTENTION_ERROR_FACTOR,
                 right.weights_error, result->weight_count);
    remember_largest_error(result->o, right.o, right.o_error, result->outputs);
    remember_largest_error(result->weights, right.weights, right.weights_error,
                           result->weight_count);
    for (size_t row = 0; row < result->rows; row++) {
        float m = result->stats[2 * row], l = result->stats[2 * row + 1];
        compare_one(file, line, "m + ln l", m + log(l), right.lse[row],
                    ATTENTION_ERROR_FACTOR * right.lse_error[row]);
        /* Where a score is NaN, it may reach m or l or both. */
        if (isnan(right.lse[row]))
            continue;
        compare_one(file, line, "m", m, right.m[row], ATTENTION_ERROR_FACTOR * right.m_error[row]);
        compare_one(file, line, "l", l, right.l[row], ATTENTION_ERROR_FACTOR * right.l_error[row]);
        remember_largest_error(&l, &right.l[row], &right.l_error[row], 1);
        remember_largest_error(&m, &right.m[row], &right.m_error[row], 1);
    }
}

void attention_check_same(const char *file, int line, const struct attention_result *actual,
                          const struct attention_result *expected)
{
    compare_bits(file, line, "o", actual->o, expected->o, expected->outputs);
    compare_bits(file, line, "stats", actual->stats, expected->stats, 2 * expected->rows);
    compare_bits(file, line, "weights", actual->weights, expected->weights, expected->weight_count);
}
