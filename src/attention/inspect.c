/* attn_inspect and attn_forward_inspect: one pass of the rows through the keys, which is the
 * forward pass or as much of it as is needed, and one of the keys through the rows. */
#include "attention/inspect.h"

#include "attention/double.h"
#include "attention/tensor_check.h"
#include "base/checked.h"

void attn_inspection_init(attn_inspection *inspection)
{
    *inspection = (attn_inspection){.size = sizeof *inspection, .query_end = INT64_MAX};
}

bool attn_inspect_plan_make(struct attn_inspect_plan *plan, const struct attn_context *context,
                            struct attn_problem *problem, const struct attn_inspected *inspected,
                            bool inspects_only)
{
    /* Strides of 0 make any number of rows of q, and without values no output holds as many. */
    int64_t rows;
    if (!attn_checked_multiply(problem->batch, problem->heads, &rows) ||
        !attn_checked_multiply(rows, problem->queries, &rows))
        return false;
    *plan =
        (struct attn_inspect_plan){.wants_rows = !inspects_only || attn_inspects_rows(inspected)};
    struct attn_scratch shared = {NULL, 0, false};
    if (plan->wants_rows) {
        if (!attn_forward_run_plan(&plan->rows, context, problem, inspected))
            return false;
        plan->rows.inspects_only = inspects_only;
        plan->rows_shared = plan->rows.plan.shared_bytes;
        plan->bytes_a_thread = plan->rows.plan.bytes_a_thread;
        attn_scratch_take(&shared, plan->rows_shared, 1, 1);
    }
    if (inspected->wants_key_sums) {
        if (!problem->stats.data) {
            const int64_t before = shared.used;
            attn_scratch_floats(&shared, rows, 2);
            plan->stats_bytes = shared.used - before;
        }
        if (!attn_key_sums_plan(&plan->sums, context, problem, inspected))
            return false;
        attn_scratch_take(&shared, plan->sums.shared_bytes, 1, 1);
        if (plan->sums.bytes_a_thread > plan->bytes_a_thread)
            plan->bytes_a_thread = plan->sums.bytes_a_thread;
    }
    plan->shared_bytes = shared.used;
    return !shared.overflow;
}

/* The problem has queries. */
static attn_status run(struct attn_context *context, struct attn_problem *problem,
                       const struct attn_inspected *inspected, bool inspects_only)
{
    struct attn_inspect_plan plan;
    if (!attn_inspect_plan_make(&plan, context, problem, inspected, inspects_only)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    if (!plan.wants_rows && !inspected->wants_key_sums)
        return ATTN_SUCCESS;
    char *memory = attn_context_workspace(context, plan.shared_bytes, plan.bytes_a_thread);
    if (!memory)
        return ATTN_ERROR_MEMORY;
    char *threads = memory + plan.shared_bytes;
    if (plan.stats_bytes > 0)
        problem->stats = attn_tensor_packed(memory + plan.rows_shared, ATTN_F32, problem->batch,
                                            problem->heads, problem->queries, 2);
    if (plan.wants_rows)
        attn_forward_run_execute(&plan.rows, context, memory, threads);
    if (inspected->wants_key_sums)
        attn_key_sums_execute(&plan.sums, context, memory + plan.rows_shared + plan.stats_bytes,
                              threads);
    return ATTN_SUCCESS;
}

/* Where there is no query, keys receive nothing. */
static attn_status inspect_nothing(const struct attn_inspected *inspected)
{
    attn_inspected_clear_sums(inspected);
    return ATTN_SUCCESS;
}

static bool has_queries(const struct attn_problem *problem)
{
    return problem->batch > 0 && problem->heads > 0 && problem->queries > 0;
}

static attn_status inspect(attn_context *context, const attn_params *params, const attn_tensor *q,
                           const attn_tensor *k, const attn_tensor *stats,
                           const attn_inspection *inspection)
{
    struct attn_error *error = &context->error;
    struct attn_problem problem;
    struct attn_inspected inspected;
    attn_status status = attn_problem_resolve(&problem, context, params, q, k);
    const unsigned numbers =
        !status && q->type == ATTN_F64 ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_F32;
    if (!status)
        status = attn_check_tensor(stats, "stats", numbers, error);
    if (status)
        return status;
    const int64_t stats_shape[4] = {problem.batch, problem.heads, problem.queries, 2};
    status = attn_check_shape(stats, "stats", stats_shape, error);
    if (!status)
        status =
            attn_inspected_resolve(&inspected, &problem, inspection, NULL, stats, false, error);
    if (status)
        return status;
    if (!has_queries(&problem))
        return inspect_nothing(&inspected);
    problem.stats = *stats;
    return problem.q.type == ATTN_F64 ? attn_double_inspect(context, &problem, &inspected)
                                      : run(context, &problem, &inspected, true);
}

static attn_status forward_inspect(attn_context *context, const attn_params *params,
                                   const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                   const attn_tensor *o, const attn_tensor *stats,
                                   const attn_inspection *inspection)
{
    struct attn_problem problem;
    struct attn_inspected inspected;
    attn_status status = attn_problem_resolve_call(&problem, context, params, q, k, v, o, stats);
    if (!status)
        status = attn_inspected_resolve(&inspected, &problem, inspection, o, stats, true,
                                        &context->error);
    if (status)
        return status;
    if (!has_queries(&problem))
        return inspect_nothing(&inspected);
    if (problem.q.type != ATTN_F64)
        return run(context, &problem, &inspected, false);
    /* The second pass takes the workspace of the first: it does not fail behind an output. */
    status = attn_double_forward(context, &problem);
    return status ? status : attn_double_inspect(context, &problem, &inspected);
}

attn_status attn_inspect(attn_context *context, const attn_params *params, const attn_tensor *q,
                         const attn_tensor *k, const attn_tensor *stats,
                         const attn_inspection *inspection)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = inspect(context, params, q, k, stats, inspection);
    attn_call_end(modes);
    return status;
}

attn_status attn_forward_inspect(attn_context *context, const attn_params *params,
                                 const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                 const attn_tensor *o, const attn_tensor *stats,
                                 const attn_inspection *inspection)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = forward_inspect(context, params, q, k, v, o, stats, inspection);
    attn_call_end(modes);
    return status;
}
