/* Calls of the library, and their results against the reference. */
#include "harness/attention_problem.h"

#include <math.h>

#include "harness/compare.h"
#include "harness/element.h"
#include "harness/test.h"

static attn_tensor output_of(const struct attention_problem *problem, attn_type type, int64_t dim)
{
    const int64_t *shape = problem->q.shape;
    return tensor_allocate(type, shape[0], shape[1], shape[2], dim, problem->output_layout,
                           problem->side);
}

static void copy_output(const attn_tensor *output, float **floats, double **doubles)
{
    *floats = tensor_packed_copy(output);
    if (output->type == ATTN_F64)
        *doubles = tensor_copy(output, LAYOUT_PACKED, GUARD_BEHIND).data;
}

static void check_success(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS)
        test_fail(__FILE__, __LINE__, "status %d: %s", (int)status, attn_message(context));
}

typedef attn_status attention_call_function(attn_context *context, const attn_params *params,
                                            const attn_tensor *q, const attn_tensor *k,
                                            const attn_tensor *v, const attn_tensor *o,
                                            const attn_tensor *stats);

/* Calls and copies; gives the statistics as they were written. */
static attn_tensor solve_with(attention_call_function *call, attn_context *context,
                              const struct attention_problem *problem,
                              struct attention_result *result)
{
    attn_type exact = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    attn_tensor o = output_of(problem, exact == ATTN_F64 ? ATTN_F64 : problem->output_type,
                              problem->v.shape[3]);
    attn_tensor stats = output_of(problem, exact, 2);
    check_success(context, call(context, &problem->params, &problem->q, &problem->k, &problem->v,
                                &o, &stats));
    *result = (struct attention_result){
        .rows = (size_t)(o.shape[0] * o.shape[1] * o.shape[2]),
        .outputs = tensor_elements(&o),
    };
    copy_output(&o, &result->o, &result->exact_o);
    copy_output(&stats, &result->stats, &result->exact_stats);
    return stats;
}

void attention_solve(attn_context *context, const struct attention_problem *problem,
                     struct attention_result *result)
{
    attn_tensor stats = solve_with(attn_forward, context, problem, result);
    attn_tensor weights =
        output_of(problem, stats.type, reference_keys(&problem->params, &problem->k));
    check_success(context, attn_weights(context, &problem->params, &problem->q, &problem->k, &stats,
                                        NULL, &weights));
    copy_output(&weights, &result->weights, &result->exact_weights);
    result->weight_count = tensor_elements(&weights);
}

void attention_solve_decode(attn_context *context, const struct attention_problem *problem,
                            struct attention_result *result)
{
    solve_with(attn_decode, context, problem, result);
}

static double largest_error;

double attention_largest_error(void)
{
    return largest_error;
}

/* An output in either precision. */
struct numbers {
    const float *floats;
    const double *doubles; /* NULL: take the floats */
    size_t count;
};

static double number_at(const struct numbers *numbers, size_t i)
{
    return numbers->doubles ? numbers->doubles[i] : (double)numbers->floats[i];
}

static void remember_largest_error(double actual, double expected, double error)
{
    if (isfinite(expected) && error > 0)
        largest_error = fmax(largest_error, fabs(actual - expected) / error);
}

static void check_numbers(const char *file, int line, const char *what,
                          const struct numbers *actual, const double *expected,
                          const double *tolerance)
{
    if (actual->doubles)
        compare_near_doubles(file, line, what, actual->doubles, expected, tolerance, actual->count);
    else
        compare_near(file, line, what, actual->floats, expected, 1, tolerance, actual->count);
}

static void check_weights(const char *file, int line, const struct attention_result *result,
                          const struct reference_attention *right)
{
    struct numbers weights = {result->weights, result->exact_weights, result->weight_count};
    double *tolerance = guarded_doubles(weights.count);
    for (size_t i = 0; i < weights.count; i++) {
        tolerance[i] = ATTENTION_ERROR_FACTOR * right->weights_error[i];
        remember_largest_error(number_at(&weights, i), right->weights[i], right->weights_error[i]);
    }
    check_numbers(file, line, "weights", &weights, right->weights, tolerance);
}

static bool weights_may_be_bf16(const struct attention_problem *problem)
{
    return problem->params.precision == ATTN_PRECISION_BF16 && problem->q.type == ATTN_BF16 &&
           problem->k.type == ATTN_BF16 && problem->v.type == ATTN_BF16;
}

static void check_outputs(const char *file, int line, const struct attention_problem *problem,
                          const struct attention_result *result,
                          const struct reference_attention *right)
{
    struct numbers o = {result->o, result->exact_o, result->outputs};
    attn_type type = problem->q.type == ATTN_F64 ? ATTN_F64 : problem->output_type;
    bool is_rounded = type == ATTN_F16 || type == ATTN_BF16;
    bool loose = weights_may_be_bf16(problem);
    double *expected = guarded_doubles(o.count), *tolerance = guarded_doubles(o.count);
    for (size_t i = 0; i < o.count; i++) {
        expected[i] = right->o[i];
        tolerance[i] = ATTENTION_ERROR_FACTOR * right->o_error[i];
        if (loose)
            tolerance[i] += element_roundoff(ATTN_BF16) * right->o_size[i];
        if (is_rounded) {
            /* Both are rounded, and either way. */
            tolerance[i] +=
                2 * element_roundoff(type) * fabs(expected[i]) + element_smallest_step(type);
            expected[i] = element_round(type, expected[i]);
        } else if (!loose) {
            remember_largest_error(number_at(&o, i), right->o[i], right->o_error[i]);
        }
    }
    check_numbers(file, line, "o", &o, expected, tolerance);
}

static void check_statistics(const char *file, int line, const struct attention_result *result,
                             const struct reference_attention *right)
{
    struct numbers stats = {result->stats, result->exact_stats, 2 * result->rows};
    for (size_t row = 0; row < result->rows; row++) {
        double m = number_at(&stats, 2 * row), l = number_at(&stats, 2 * row + 1);
        compare_one(file, line, "m + ln l", m + log(l), right->lse[row],
                    ATTENTION_ERROR_FACTOR * right->lse_error[row]);
        /* Where a score is NaN, it may reach m or l or both. */
        if (isnan(right->lse[row]))
            continue;
        compare_one(file, line, "m", m, right->m[row],
                    ATTENTION_ERROR_FACTOR * right->m_error[row]);
        compare_one(file, line, "l", l, right->l[row],
                    ATTENTION_ERROR_FACTOR * right->l_error[row]);
        remember_largest_error(l, right->l[row], right->l_error[row]);
        remember_largest_error(m, right->m[row], right->m_error[row]);
    }
}

void attention_check_result(const char *file, int line, const struct attention_problem *problem,
                            const struct attention_result *result)
{
    struct reference_attention right;
    reference_attention(&problem->params, &problem->q, &problem->k, &problem->v, &right);
    check_outputs(file, line, problem, result, &right);
    if (result->weights)
        check_weights(file, line, result, &right);
    check_statistics(file, line, result, &right);
}

void attention_check_same(const char *file, int line, const struct attention_result *actual,
                          const struct attention_result *expected)
{
    compare_bits(file, line, "o", actual->o, expected->o, expected->outputs);
    compare_bits(file, line, "stats", actual->stats, expected->stats, 2 * expected->rows);
    if (actual->weights && expected->weights)
        compare_bits(file, line, "weights", actual->weights, expected->weights,
                     expected->weight_count);
}
