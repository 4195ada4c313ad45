#include "attention/problem.h"

#include <inttypes.h>
#include <math.h>

#include "attention/overlap.h"
#include "attention/params.h"
#include "attention/problem_places.h"
#include "attention/tensor_check.h"
#include "attention/tensor_extent.h"

static attn_status resolve_row_scales(attn_tensor *resolved, const attn_tensor *scales,
                                      const char *name, const attn_tensor *rows,
                                      const char *rows_name, struct attn_error *error)
{
    if (rows->type != ATTN_I8)
        return ATTN_SUCCESS;
    RETURN_IF(!scales, error, ATTN_ERROR_ARGUMENT,
              "%s is NULL, expected the scales of %s, which has type i8", name, rows_name);
    const int64_t full[4] = {rows->shape[0], rows->shape[1], rows->shape[2], 1};
    return attn_resolve_broadcast(resolved, scales, name, ATTN_TYPES_F32, full, error);
}

static attn_status resolve_scores(struct attn_problem *problem, const attn_params *params,
                                  struct attn_error *error)
{
    bool default_scale = isnan(params->scale);
    RETURN_IF(default_scale && problem->d_qk == 0, error, ATTN_ERROR_ARGUMENT,
              "params.scale is not given and q has dim 0: 1/sqrt(0) is no scale, give one");
    problem->scale_f64 = default_scale ? 1.0 / sqrt((double)problem->d_qk) : (double)params->scale;
    problem->scale = (float)problem->scale_f64;

    RETURN_IF(!(params->soft_cap >= 0.0f && params->soft_cap < INFINITY), error,
              ATTN_ERROR_ARGUMENT, "params.soft_cap is %g, expected a finite number of at least 0",
              (double)params->soft_cap);
    problem->soft_cap = params->soft_cap;
    problem->alibi_slopes = params->alibi_slopes;
    problem->sinks = params->sinks;
    problem->change_scores = params->change_scores;
    problem->change_gradients = params->change_gradients;
    problem->key_range = params->key_range;
    problem->callback_user = params->callback_user;

    const int64_t full[4] = {problem->batch, problem->heads, problem->queries, problem->keys};
    if (params->keep) {
        attn_status status = attn_resolve_broadcast(&problem->keep, params->keep, "params.keep",
                                                    ATTN_TYPES_BOOL, full, error);
        if (status)
            return status;
        problem->has_keep = true;
    }
    if (params->bias) {
        unsigned types = problem->q.type == ATTN_F64 ? ATTN_TYPES_FLOAT | ATTN_TYPES_F64
                                                     : (unsigned)ATTN_TYPES_FLOAT;
        attn_status status =
            attn_resolve_broadcast(&problem->bias, params->bias, "params.bias", types, full, error);
        if (status)
            return status;
        problem->has_bias = true;
    }
    return ATTN_SUCCESS;
}

static attn_status resolve_dropout(struct attn_problem *problem, const attn_params *params,
                                   struct attn_error *error)
{
    RETURN_IF(!(params->dropout >= 0.0f && params->dropout <= 1.0f), error, ATTN_ERROR_ARGUMENT,
              "params.dropout is %g, expected a probability of 0 to 1", (double)params->dropout);
    const int64_t offsets[2] = {params->dropout_batch, params->dropout_query};
    const char *const names[2] = {"batch", "query"};
    for (int n = 0; n < 2; n++)
        RETURN_IF(offsets[n] < 0, error, ATTN_ERROR_ARGUMENT,
                  "params.dropout_%s is %" PRId64 ", expected at least 0", names[n], offsets[n]);
    double rate = (double)params->dropout;
    problem->has_dropout = rate > 0.0;
    /* A whole number is below rate·2³² iff it is below the next whole one. */
    problem->dropout_threshold = (uint64_t)ceil(rate * 0x1p32);
    problem->dropout_kept = rate < 1.0 ? 1.0 / (1.0 - rate) : 0.0;
    return ATTN_SUCCESS;
}

static attn_status resolve_precision(struct attn_problem *problem, struct attn_context *context,
                                     const attn_params *params)
{
    struct attn_error *error = &context->error;
    RETURN_IF(params->precision != ATTN_PRECISION_EXACT && params->precision != ATTN_PRECISION_BF16,
              error, ATTN_ERROR_ARGUMENT,
              "params.precision is %d, expected a value of attn_precision", (int)params->precision);
    if (params->precision == ATTN_PRECISION_BF16 && context->kernels->dots &&
        problem->q.type == ATTN_BF16 && problem->k.type == ATTN_BF16) {
        problem->precision = ATTN_PRECISION_BF16;
        attn_context_ask_for_tiles(context);
    }
    return ATTN_SUCCESS;
}

/* q and k, and the axes that they give. */
static attn_status resolve_queries_and_keys(struct attn_problem *problem, const attn_params *params,
                                            const attn_tensor *q, const attn_tensor *k,
                                            struct attn_error *error)
{
    attn_status status = attn_check_tensor(q, "q", ATTN_TYPES_FLOAT | ATTN_TYPES_F64, error);
    if (!status)
        status = attn_check_tensor(
            k, "k", q->type == ATTN_F64 ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_ROWS,
            error);
    if (status)
        return status;
    RETURN_IF(!params->block_table && k->shape[0] != q->shape[0], error, ATTN_ERROR_SHAPE,
              "k has batch %" PRId64 ", expected %" PRId64 " as q", k->shape[0], q->shape[0]);
    RETURN_IF(k->shape[3] != q->shape[3], error, ATTN_ERROR_SHAPE,
              "k has dim %" PRId64 ", expected %" PRId64 " as q", k->shape[3], q->shape[3]);
    RETURN_IF(q->shape[1] > 0 && k->shape[1] == 0, error, ATTN_ERROR_SHAPE,
              "k has no heads but q has %" PRId64
              ": there are query heads but no key heads, expected a divisor of q's",
              q->shape[1]);
    RETURN_IF(q->shape[1] > 0 && q->shape[1] % k->shape[1] != 0, error, ATTN_ERROR_SHAPE,
              "q has %" PRId64 " heads, expected a multiple of k's %" PRId64
              ": query heads are not a multiple of key heads",
              q->shape[1], k->shape[1]);
    *problem = (struct attn_problem){
        .params = *params,
        .batch = q->shape[0],
        .heads = q->shape[1],
        .key_heads = k->shape[1],
        .queries = q->shape[2],
        .keys = k->shape[2],
        .d_qk = q->shape[3],
        .q = attn_without_offsets(q),
        .k = attn_without_offsets(k),
    };
    return ATTN_SUCCESS;
}

attn_status attn_problem_resolve(struct attn_problem *problem, struct attn_context *context,
                                 const attn_params *params, const attn_tensor *q,
                                 const attn_tensor *k)
{
    struct attn_error *error = &context->error;
    attn_params read;
    RETURN_IF(!attn_params_read(&read, params), error, ATTN_ERROR_ARGUMENT,
              "params.size is %zu, expected %zu or that of an earlier version: start from "
              "attn_params_init",
              params->size, sizeof *params);
    attn_status status = resolve_queries_and_keys(problem, &read, q, k, error);
    if (!status)
        status = attn_problem_resolve_pages(problem, &read, error);
    if (!status)
        status = attn_problem_resolve_sequences(problem, &read, error);
    if (!status)
        status = attn_problem_check_pages(problem, error);
    if (!status)
        status = attn_problem_resolve_positions(problem, &read, error);
    if (!status)
        status = resolve_scores(problem, &read, error);
    if (!status)
        status = resolve_dropout(problem, &read, error);
    if (!status)
        status = resolve_row_scales(&problem->key_scales, read.key_scales, "params.key_scales",
                                    &problem->k, "k", error);
    return status ? status : resolve_precision(problem, context, &read);
}

attn_status attn_problem_resolve_values(struct attn_problem *problem, const attn_tensor *v,
                                        struct attn_error *error)
{
    bool doubles = problem->q.type == ATTN_F64;
    attn_status status = attn_check_tensor(
        v, "v", doubles ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_ROWS, error);
    if (status)
        return status;
    const int64_t shape[4] = {problem->k.shape[0], problem->key_heads, problem->k.shape[2],
                              v->shape[3]};
    status = attn_check_shape(v, "v", shape, error);
    if (status)
        return status;
    problem->d_v = v->shape[3];
    problem->v = attn_without_offsets(v);
    /* Factors of dropout are not numbers of 8 bits: 1/(1 − rate) would be rounded with the weight.
     */
    problem->dot_values =
        problem->precision == ATTN_PRECISION_BF16 && v->type == ATTN_BF16 && !problem->has_dropout;
    return resolve_row_scales(&problem->value_scales, problem->params.value_scales,
                              "params.value_scales", &problem->v, "v", error);
}

attn_status attn_problem_check_output_form(const struct attn_problem *problem, const attn_tensor *o,
                                           const attn_tensor *stats, struct attn_error *error)
{
    bool doubles = problem->q.type == ATTN_F64;
    attn_status status = attn_check_tensor(
        o, "o", doubles ? (unsigned)ATTN_TYPES_F64 : ATTN_TYPES_F32 | 1u << problem->q.type, error);
    if (!status && stats)
        status = attn_check_tensor(
            stats, "stats", doubles ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_F32, error);
    if (status)
        return status;
    const int64_t o_shape[4] = {problem->batch, problem->heads, problem->queries, problem->d_v};
    const int64_t stats_shape[4] = {problem->batch, problem->heads, problem->queries, 2};
    status = attn_check_shape(o, "o", o_shape, error);
    if (!status && stats)
        status = attn_check_shape(stats, "stats", stats_shape, error);
    return status;
}

attn_status attn_problem_resolve_outputs(struct attn_problem *problem, const attn_tensor *o,
                                         const attn_tensor *stats, struct attn_error *error)
{
    attn_status status = attn_problem_check_output_form(problem, o, stats, error);
    if (status)
        return status;
    problem->o = attn_without_offsets(o);
    status = attn_check_output(problem, o, "o", true, error);
    if (!status && stats) {
        problem->stats = *stats;
        status = attn_check_output(problem, stats, "stats", true, error);
        RETURN_IF(!status && attn_overlap(stats, o), error, ATTN_ERROR_OVERLAP,
                  "stats and o share memory, expected outputs apart from each other");
    }
    return status;
}

attn_status attn_problem_resolve_call(struct attn_problem *problem, struct attn_context *context,
                                      const attn_params *params, const attn_tensor *q,
                                      const attn_tensor *k, const attn_tensor *v,
                                      const attn_tensor *o, const attn_tensor *stats)
{
    struct attn_error *error = &context->error;
    attn_status status = attn_problem_resolve(problem, context, params, q, k);
    if (!status)
        status = attn_problem_resolve_values(problem, v, error);
    if (!status)
        status = attn_problem_resolve_outputs(problem, o, stats, error);
    return status;
}
