#include "harness/attention_gradient.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/element.h"
#include "harness/reference_gradient.h"
#include "harness/test.h"

void gradient_call_make(struct gradient_call *call, const struct attention_problem *problem,
                        uint64_t seed)
{
    struct random_source source = {seed};
    const int64_t *shape = problem->q.shape;
    *call = (struct gradient_call){.d_o = tensor_allocate(problem->q.type, shape[0], shape[1],
                                                          shape[2], problem->v.shape[3],
                                                          LAYOUT_PACKED, GUARD_BEHIND)};
    tensor_fill_random(&call->d_o, &source, -1, 1);
}

/* What a call writes. */
struct outputs {
    attn_tensor q, k, v, bias, sinks;
};

static attn_tensor output_like(const struct attention_problem *problem, attn_type type,
                               const int64_t shape[4])
{
    return tensor_allocate(type, shape[0], shape[1], shape[2], shape[3], problem->output_layout,
                           problem->side);
}

static attn_type type_of(const struct gradient_call *call, const attn_tensor *of)
{
    return call->types == GRADIENTS_OF_INPUTS || of->type == ATTN_F64 ? of->type : ATTN_F32;
}

static void make_outputs(const struct attention_problem *problem, const struct gradient_call *call,
                         struct outputs *outputs, attn_gradients *gradients)
{
    attn_type exact = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    attn_gradients_init(gradients);
    outputs->q = output_like(problem, type_of(call, &problem->q), problem->q.shape);
    outputs->k = output_like(problem, type_of(call, &problem->k), problem->k.shape);
    outputs->v = output_like(problem, type_of(call, &problem->v), problem->v.shape);
    gradients->q = &outputs->q;
    gradients->k = &outputs->k;
    gradients->v = &outputs->v;
    if (problem->params.bias) {
        outputs->bias = output_like(problem, exact, problem->bias.shape);
        gradients->bias = &outputs->bias;
    }
    if (problem->params.sinks) {
        outputs->sinks = output_like(problem, exact, (int64_t[]){1, problem->q.shape[1], 1, 1});
        gradients->sinks = &outputs->sinks;
    }
}

static double *copy_of(const attn_tensor *tensor, size_t *count)
{
    *count = tensor_elements(tensor);
    return tensor_convert(tensor, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND).data;
}

static void check_success(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS)
        test_fail(__FILE__, __LINE__, "status %d: %s", (int)status, attn_message(context));
}

void gradient_solve(attn_context *context, const struct attention_problem *problem,
                    const struct gradient_call *call, struct gradient_result *result)
{
    const int64_t *shape = problem->q.shape;
    attn_type exact = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    attn_type o_type = exact == ATTN_F64 ? ATTN_F64 : problem->output_type;
    attn_tensor o = output_like(problem, o_type,
                                (int64_t[]){shape[0], shape[1], shape[2], problem->v.shape[3]});
    attn_tensor stats = output_like(problem, exact, (int64_t[]){shape[0], shape[1], shape[2], 2});
    check_success(context, attn_forward(context, &problem->params, &problem->q, &problem->k,
                                        &problem->v, &o, &stats));
    struct outputs outputs;
    attn_gradients gradients;
    make_outputs(problem, call, &outputs, &gradients);
    check_success(context, attn_backward(context, &problem->params, &problem->q, &problem->k,
                                         &problem->v, &o, &stats, &call->d_o, &gradients));
    *result = (struct gradient_result){0};
    result->q = copy_of(&outputs.q, &result->of_q);
    result->k = copy_of(&outputs.k, &result->of_k);
    result->v = copy_of(&outputs.v, &result->of_v);
    if (gradients.bias)
        result->bias = copy_of(&outputs.bias, &result->of_bias);
    if (gradients.sinks)
        result->sinks = copy_of(&outputs.sinks, &result->of_sinks);
}

static double largest_error;

double gradient_largest_error(void)
{
    return largest_error;
}

/* One gradient, and what is right. */
struct comparison {
    const char *what;
    attn_type type;
    const double *actual, *expected, *error;
    size_t count;
    bool is_loose;
};

static void check_gradient(const char *file, int line, const struct comparison *pair)
{
    bool is_rounded = pair->type == ATTN_F16 || pair->type == ATTN_BF16;
    double *expected = guarded_doubles(pair->count), *tolerance = guarded_doubles(pair->count);
    for (size_t i = 0; i < pair->count; i++) {
        double right = pair->expected[i], error = pair->error[i];
        expected[i] = right;
        tolerance[i] = GRADIENT_ERROR_FACTOR * error;
        if (is_rounded) {
            /* Both are rounded, and either way. */
            tolerance[i] +=
                2 * element_roundoff(pair->type) * fabs(right) + element_smallest_step(pair->type);
            expected[i] = element_round(pair->type, right);
        } else if (!pair->is_loose && isfinite(right) && error > 0) {
            largest_error = fmax(largest_error, fabs(pair->actual[i] - right) / error);
        }
    }
    compare_near_doubles(file, line, pair->what, pair->actual, expected, tolerance, pair->count);
}

/* Whether the forward pass may have rounded its weights to bf16. */
static bool forward_may_be_bf16(const struct attention_problem *problem)
{
    return problem->params.precision == ATTN_PRECISION_BF16 && problem->q.type == ATTN_BF16 &&
           problem->k.type == ATTN_BF16 && problem->v.type == ATTN_BF16;
}

void gradient_check_result(const char *file, int line, const struct attention_problem *problem,
                           const struct gradient_call *call, const struct gradient_result *result)
{
    bool forward = forward_may_be_bf16(problem);
    bool loose = forward && call->d_o.type == ATTN_BF16;
    double roundoff = element_roundoff(ATTN_BF16);
    attn_type exact = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    struct reference_gradient right;
    reference_gradient(
        &(struct reference_gradient_call){
            .params = &problem->params,
            .q = &problem->q,
            .k = &problem->k,
            .v = &problem->v,
            .d_o = &call->d_o,
            .o_type = exact == ATTN_F64 ? ATTN_F64 : problem->output_type,
            .o_weight_roundoff = forward ? roundoff : 0,
            .weight_roundoff = loose ? roundoff : 0,
        },
        &right);
    const struct comparison pairs[] = {
        {"dq", type_of(call, &problem->q), result->q, right.q, right.q_error, result->of_q,
         forward},
        {"dk", type_of(call, &problem->k), result->k, right.k, right.k_error, result->of_k,
         forward},
        {"dv", type_of(call, &problem->v), result->v, right.v, right.v_error, result->of_v,
         forward},
        {"dbias", exact, result->bias, right.bias, right.bias_error, result->of_bias, forward},
        {"dsinks", exact, result->sinks, right.sinks, right.sinks_error, result->of_sinks, forward},
    };
    for (size_t n = 0; n < COUNT(pairs); n++)
        check_gradient(file, line, &pairs[n]);
}

static void check_same(const char *file, int line, const char *what, const double *actual,
                       const double *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&actual[i], &expected[i], sizeof *actual) != 0) {
            test_fail(file, line, "%s[%zu] of %zu is %.9g, expected the bits of %.9g", what, i,
                      count, actual[i], expected[i]);
            return;
        }
}

void gradient_check_same(const char *file, int line, const struct gradient_result *actual,
                         const struct gradient_result *expected)
{
    check_same(file, line, "dq", actual->q, expected->q, expected->of_q);
    check_same(file, line, "dk", actual->k, expected->k, expected->of_k);
    check_same(file, line, "dv", actual->v, expected->v, expected->of_v);
    check_same(file, line, "dbias", actual->bias, expected->bias, expected->of_bias);
    check_same(file, line, "dsinks", actual->sinks, expected->sinks, expected->of_sinks);
}
