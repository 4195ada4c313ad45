/* attn_explain: what a call would do, without doing it. */
#include "attn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attention/backward_plan.h"
#include "attention/decode_plan.h"
#include "attention/double.h"
#include "attention/forward_plan.h"
#include "attention/inspect.h"
#include "attention/tensor_check.h"
#include "attention/weights.h"
#include "base/checked.h"
#include "kernel/dot_kernels.h"

/* Something to point to where the caller has no data yet; never read. */
static _Alignas(64) const char no_data[64];

/* The tensor, with an address where it has none, so that it passes as a real one. */
static attn_tensor with_data(const attn_tensor *tensor)
{
    attn_tensor view = *tensor;
    if (!view.data)
        view.data = (void *)(uintptr_t)no_data;
    return view;
}

static void add_text(attn_explanation *explanation, const char *text)
{
    size_t used = strlen(explanation->text);
    snprintf(explanation->text + used, sizeof explanation->text - used, "%s", text);
}

/* What stands between the tensors and the kernels. */
static void add_conversions(attn_explanation *explanation, const struct attn_problem *problem,
                            bool has_v)
{
    const struct {
        const char *name;
        const attn_tensor *tensor;
    } rows[] = {{"k", &problem->k}, {"v", has_v ? &problem->v : NULL}};
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        if (!rows[n].tensor || !attn_rows_need_scratch(problem, rows[n].tensor))
            continue;
        char text[96];
        const char *reason = rows[n].tensor->type != ATTN_F32 ? "not f32"
                             : problem->block_table           ? "paged"
                                                              : "elements of a row lie apart";
        snprintf(text, sizeof text, "; %s goes through a copy of one block (%s)", rows[n].name,
                 reason);
        add_text(explanation, text);
    }
    if (problem->k.type == ATTN_I8 || (has_v && problem->v.type == ATTN_I8))
        add_text(explanation, "; i8 rows are multiplied by their scales");
}

static void add_products(attn_explanation *explanation, const char *instructions)
{
    add_text(explanation, "; products of bf16 pairs by ");
    add_text(explanation, instructions);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Whether the operation looks at q and k alone. */
static bool has_no_values(attn_operation operation)
{
    return operation == ATTN_OPERATION_WEIGHTS || operation == ATTN_OPERATION_INSPECT;
}

static bool explain_forward(attn_explanation *explanation, const struct attn_context *context,
                            const struct attn_problem *problem)
{
    struct attn_forward_plan plan;
    if (!attn_forward_plan_make(&plan, context, problem, NULL) ||
        !attn_workspace_bytes(context, plan.shared_bytes, plan.bytes_a_thread,
                              &explanation->workspace))
        return false;
    explanation->items = plan.items;
    explanation->panel_queries = plan.lanes;
    explanation->keys_a_block = ATTN_KEY_BLOCK;
    snprintf(explanation->text, sizeof explanation->text,
             "forward, %s: panels of %d queries, blocks of %d keys, %" PRId64
             " item%s of at most %" PRId64 " panel%s",
             attn_isa_name(explanation->isa), plan.lanes, (int)ATTN_KEY_BLOCK, plan.items,
             plural(plan.items), plan.panels_an_item, plural(plan.panels_an_item));
    return true;
}

/* Of everything that can be told; attn_forward_inspect without statistics. */
static bool explain_inspect(attn_explanation *explanation, const struct attn_context *context,
                            struct attn_problem *problem, attn_operation operation)
{
    const bool inspects_only = operation == ATTN_OPERATION_INSPECT;
    struct attn_inspected inspected;
    struct attn_inspect_plan plan;
    attn_inspected_all(&inspected, problem);
    if (inspects_only) /* given, wherever they are */
        problem->stats.data = (void *)(uintptr_t)no_data;
    if (!attn_inspect_plan_make(&plan, context, problem, &inspected, inspects_only) ||
        !attn_workspace_bytes(context, plan.shared_bytes, plan.bytes_a_thread,
                              &explanation->workspace))
        return false;
    const struct attn_forward_plan *rows = &plan.rows.plan;
    explanation->items = rows->items;
    explanation->panel_queries = rows->lanes;
    explanation->keys_a_block = ATTN_KEY_BLOCK;
    snprintf(explanation->text, sizeof explanation->text,
             "%s, %s: panels of %d queries, blocks of %d keys, %" PRId64
             " item%s of at most %" PRId64 " panel%s",
             inspects_only ? "inspection" : "forward with inspection",
             attn_isa_name(explanation->isa), rows->lanes, (int)ATTN_KEY_BLOCK, rows->items,
             plural(rows->items), rows->panels_an_item, plural(rows->panels_an_item));
    if (!inspected.wants_key_sums)
        return true;
    char sums[96];
    snprintf(sums, sizeof sums, "; key_sums by %" PRId64 " item%s of at most %" PRId64 " keys",
             plan.sums.items, plural(plan.sums.items), attn_key_sums_chunk());
    add_text(explanation, sums);
    return true;
}

static bool explain_decode(attn_explanation *explanation, const struct attn_context *context,
                           const struct attn_problem *problem)
{
    struct attn_decode_plan plan;
    if (!attn_decode_plan_make(&plan, context, problem) ||
        !attn_workspace_bytes(context, plan.shared_bytes, plan.bytes_a_thread,
                              &explanation->workspace))
        return false;
    explanation->items = plan.items;
    explanation->panel_queries = plan.pass_queries;
    explanation->keys_a_block = plan.chunk_keys;
    snprintf(explanation->text, sizeof explanation->text,
             "decode, %s: each row of K and V is read for %" PRId64 " quer%s, chunks of %" PRId64
             " keys, %" PRId64 " item%s",
             attn_isa_name(explanation->isa), plan.pass_queries,
             plan.pass_queries == 1 ? "y" : "ies at once", plan.chunk_keys, plan.items,
             plural(plan.items));
    return true;
}

static bool explain_weights(attn_explanation *explanation, const struct attn_context *context,
                            const struct attn_problem *problem)
{
    int lanes = 2 * context->kernels->vector_lanes;
    int64_t bytes = attn_weights_bytes(context->kernels, problem);
    if (!attn_workspace_bytes(context, 0, bytes, &explanation->workspace))
        return false;
    int64_t groups = problem->queries / lanes + (problem->queries % lanes > 0);
    explanation->items = groups * problem->heads * problem->batch;
    explanation->panel_queries = lanes;
    explanation->keys_a_block = ATTN_KEY_BLOCK;
    snprintf(explanation->text, sizeof explanation->text,
             "weights, %s: panels of %d queries, blocks of %d keys",
             attn_isa_name(explanation->isa), lanes, (int)ATTN_KEY_BLOCK);
    return true;
}

/* Of the gradients of q, k and v, with a d_o like o. */
static bool explain_backward(attn_explanation *explanation, const struct attn_context *context,
                             const struct attn_problem *problem, attn_type o_type)
{
    const struct attn_backward_problem backward = {
        .d_o.type = o_type, .wants_q = true, .wants_k = true, .wants_v = true};
    struct attn_backward_plan plan;
    if (!attn_backward_plan_make(&plan, context, problem, &backward) ||
        !attn_workspace_bytes(context, plan.shared_bytes, plan.bytes_a_thread,
                              &explanation->workspace))
        return false;
    explanation->items = attn_backward_lines(&plan);
    explanation->panel_queries = plan.lanes;
    explanation->keys_a_block = ATTN_KEY_BLOCK;
    snprintf(explanation->text, sizeof explanation->text,
             "backward, %s: panels of %d queries, %" PRId64
             " at a time, blocks of %d keys, %" PRId64 " item%s of at most %" PRId64 " keys",
             attn_isa_name(explanation->isa), plan.lanes, plan.panels_a_pass, (int)ATTN_KEY_BLOCK,
             explanation->items, plural(explanation->items), plan.chunk_rows);
    if (plan.chunks > 1) {
        char text[96];
        snprintf(text, sizeof text,
                 "; dQ of at most %" PRId64 " chunks of keys a sequence is summed at the end",
                 plan.chunks);
        add_text(explanation, text);
    }
    if (!plan.dots && !attn_backward_in_place(context->kernels, &problem->q))
        add_text(explanation, "; rows of q go through a copy of one panel (not f32, apart, or no "
                              "whole vectors)");
    if (!plan.dots && problem->precision == ATTN_PRECISION_BF16)
        add_text(explanation, "; f32 but for scores (v or o not bf16, or an odd d_v)");
    return true;
}

static bool explain_double(attn_explanation *explanation, const struct attn_context *context,
                           const struct attn_problem *problem, attn_operation operation)
{
    bool backward = operation == ATTN_OPERATION_BACKWARD;
    int64_t bytes = backward ? attn_double_backward_bytes(problem) : attn_double_bytes(problem);
    if (!attn_workspace_bytes(context, 0, bytes, &explanation->workspace))
        return false;
    explanation->isa = ATTN_ISA_SCALAR;
    explanation->items = backward ? problem->sequences * problem->key_heads
                                  : problem->queries * problem->heads * problem->batch;
    explanation->panel_queries = 1;
    explanation->keys_a_block = problem->keys;
    add_text(explanation, "f64 for checking: plain C, one row of scores at a time");
    return true;
}

/* Whether an output could hold the rows: plans multiply their counts. Outputs that have no data yet
 * are not held against memory by anything else. */
static bool rows_fit(const struct attn_problem *problem)
{
    int64_t rows, bytes;
    return attn_checked_multiply(problem->batch, problem->heads, &rows) &&
           attn_checked_multiply(rows, problem->queries, &rows) &&
           attn_checked_multiply(rows, 64, &bytes);
}

/* Checks what the operation would check, as far as it can be without data. */
static attn_status resolve(struct attn_problem *problem, attn_operation operation,
                           const attn_params *params, const attn_tensor *const tensors[4],
                           struct attn_context *context, struct attn_error *error)
{
    const char *const names[4] = {"q", "k", "v", "o"};
    const int count = has_no_values(operation) ? 2 : 4;
    attn_tensor views[4];
    for (int n = 0; n < count; n++) {
        RETURN_IF(!tensors[n], error, ATTN_ERROR_ARGUMENT, "%s is NULL, expected a tensor",
                  names[n]);
        views[n] = with_data(tensors[n]);
    }
    attn_status status = attn_problem_resolve(problem, context, params, &views[0], &views[1]);
    if (status || count == 2)
        return status;
    status = attn_problem_resolve_values(problem, &views[2], error);
    if (status)
        return status;
    bool has_data = true;
    for (int n = 0; n < count; n++)
        has_data = has_data && tensors[n]->data;
    /* Of a backward pass o is an input. */
    if (has_data && operation != ATTN_OPERATION_BACKWARD)
        return attn_problem_resolve_outputs(problem, &views[3], NULL, error);
    return attn_problem_check_output_form(problem, &views[3], NULL, error);
}

/* `o` is looked at for ATTN_OPERATION_BACKWARD only. */
static bool explain_operation(attn_explanation *explanation, const struct attn_context *context,
                              struct attn_problem *problem, attn_operation operation,
                              const attn_tensor *o)
{
    if (problem->q.type == ATTN_F64)
        return explain_double(explanation, context, problem, operation);
    switch (operation) {
    case ATTN_OPERATION_FORWARD:
        return explain_forward(explanation, context, problem);
    case ATTN_OPERATION_DECODE:
        return explain_decode(explanation, context, problem);
    case ATTN_OPERATION_WEIGHTS:
        return explain_weights(explanation, context, problem);
    case ATTN_OPERATION_BACKWARD:
        return explain_backward(explanation, context, problem, o->type);
    case ATTN_OPERATION_INSPECT:
    case ATTN_OPERATION_FORWARD_INSPECT:
        return explain_inspect(explanation, context, problem, operation);
    }
    return false;
}

static attn_status explain(attn_context *context, attn_operation operation,
                           const attn_params *params, const attn_tensor *const tensors[4],
                           attn_explanation *explanation)
{
    struct attn_error *error = &context->error;
    RETURN_IF(!explanation, error, ATTN_ERROR_ARGUMENT,
              "explanation is NULL, expected a place for the answer");
    RETURN_IF(explanation->size != sizeof *explanation, error, ATTN_ERROR_ARGUMENT,
              "explanation.size is %zu, expected %zu", explanation->size, sizeof *explanation);
    RETURN_IF((int)operation < ATTN_OPERATION_FORWARD ||
                  (int)operation > ATTN_OPERATION_FORWARD_INSPECT,
              error, ATTN_ERROR_ARGUMENT, "operation is %d, expected a value of attn_operation",
              (int)operation);

    struct attn_problem problem;
    const attn_tensor *o = tensors[3];
    attn_status status = resolve(&problem, operation, params, tensors, context, error);
    if (!status && operation == ATTN_OPERATION_DECODE)
        status = attn_decode_check(&problem, error);
    if (!status && operation == ATTN_OPERATION_BACKWARD)
        status = attn_backward_check(&problem, error);
    if (status)
        return status;
    const bool empty = problem.batch == 0 || problem.heads == 0 || problem.queries == 0;
    RETURN_IF(!empty && !rows_fit(&problem), error, ATTN_ERROR_SHAPE,
              "q has shape [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
              "], expected no more rows than an output can hold",
              problem.batch, problem.heads, problem.queries, problem.d_qk);

    attn_explanation answer = {
        .size = sizeof answer,
        .isa = context->kernels->isa,
        .precision = operation == ATTN_OPERATION_DECODE ? ATTN_PRECISION_EXACT : problem.precision,
        .threads = context->parallel.threads};
    bool fits = true;
    if (empty)
        add_text(&answer, "nothing to do: there is no query");
    else if (operation == ATTN_OPERATION_BACKWARD && (problem.keys == 0 || problem.d_v == 0))
        add_text(&answer, "nothing to do: without keys or values all gradients are 0");
    else
        fits = explain_operation(&answer, context, &problem, operation, o);
    if (!fits) {
        attn_error_memory(error);
        return ATTN_ERROR_MEMORY;
    }
    if (answer.items < answer.threads)
        answer.threads = answer.items > 0 ? (int)answer.items : 1;
    if (answer.items > 0 && problem.q.type != ATTN_F64 && operation != ATTN_OPERATION_DECODE)
        add_conversions(&answer, &problem, !has_no_values(operation));
    if (answer.precision == ATTN_PRECISION_BF16)
        add_products(&answer, context->kernels->dots->name);
    else if (problem.params.precision == ATTN_PRECISION_BF16)
        add_text(&answer, operation == ATTN_OPERATION_DECODE
                              ? "; exact: decode has no bf16 products"
                              : "; exact: bf16 products need bf16 q and k and a CPU that has them");
    *explanation = answer;
    return ATTN_SUCCESS;
}

attn_status attn_explain(attn_context *context, attn_operation operation, const attn_params *params,
                         const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                         const attn_tensor *o, attn_explanation *explanation)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    const attn_tensor *const tensors[4] = {q, k, v, o};
    attn_status status = explain(context, operation, params, tensors, explanation);
    attn_call_end(modes);
    return status;
}
