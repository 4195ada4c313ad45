#include "inspect_call.h"

#include <math.h>
#include <string.h>

#include "harness/test.h"

struct inspect_wants inspect_everything(int64_t top)
{
    return (struct inspect_wants){top, true, true, true, 0, INT64_MAX};
}

/* The outputs of one call. */
struct outputs {
    attn_tensor o, stats, top_weights, top_keys, entropy, maximum, key_sums;
    attn_inspection inspection;
};

static attn_tensor output(const struct attention_problem *problem, attn_type type, int64_t rows,
                          int64_t width)
{
    const int64_t *shape = problem->q.shape;
    return tensor_allocate(type, shape[0], shape[1], rows, width, problem->output_layout,
                           problem->side);
}

static void make_outputs(const struct attention_problem *problem, const struct inspect_wants *wants,
                         struct outputs *outputs)
{
    const attn_type type = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    const int64_t rows = problem->q.shape[2];
    outputs->o =
        output(problem, type == ATTN_F64 ? type : problem->output_type, rows, problem->v.shape[3]);
    outputs->stats = output(problem, type, rows, 2);
    outputs->top_weights = output(problem, type, rows, wants->top);
    outputs->top_keys = output(problem, ATTN_I32, rows, wants->top);
    outputs->entropy = output(problem, type, rows, 1);
    outputs->maximum = output(problem, type, rows, 1);
    outputs->key_sums = output(problem, type, reference_keys(&problem->params, &problem->k), 1);
    attn_inspection *inspection = &outputs->inspection;
    attn_inspection_init(inspection);
    if (wants->top > 0) {
        inspection->top_weights = &outputs->top_weights;
        inspection->top_keys = &outputs->top_keys;
    }
    inspection->entropy = wants->entropy ? &outputs->entropy : NULL;
    inspection->maximum = wants->maximum ? &outputs->maximum : NULL;
    inspection->key_sums = wants->key_sums ? &outputs->key_sums : NULL;
    inspection->query_begin = wants->query_begin;
    inspection->query_end = wants->query_end;
}

static void check_success(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS)
        test_fail(__FILE__, __LINE__, "status %d: %s", (int)status, attn_message(context));
}

static double *copy_of(const attn_tensor *tensor, bool wanted)
{
    if (!wanted)
        return NULL;
    double *copy = guarded_doubles(tensor_elements(tensor)), *next = copy;
    for (int64_t b = 0; b < tensor->shape[0]; b++)
        for (int64_t h = 0; h < tensor->shape[1]; h++)
            for (int64_t i = 0; i < tensor->shape[2]; i++)
                for (int64_t c = 0; c < tensor->shape[3]; c++)
                    *next++ = tensor_get(tensor, b, h, i, c);
    return copy;
}

static void copy_outputs(const struct outputs *outputs, const struct inspect_wants *wants,
                         bool forward, struct inspect_result *result)
{
    *result = (struct inspect_result){
        .top_weights = copy_of(&outputs->top_weights, wants->top > 0),
        .top_keys = copy_of(&outputs->top_keys, wants->top > 0),
        .entropy = copy_of(&outputs->entropy, wants->entropy),
        .maximum = copy_of(&outputs->maximum, wants->maximum),
        .key_sums = copy_of(&outputs->key_sums, wants->key_sums),
        .rows = tensor_elements(&outputs->entropy),
        .sums = tensor_elements(&outputs->key_sums),
        .top = wants->top,
        .o = copy_of(&outputs->o, forward),
        .stats = copy_of(&outputs->stats, forward),
        .outputs = tensor_elements(&outputs->o),
    };
}

void inspect_solve(attn_context *context, const struct attention_problem *problem,
                   const struct inspect_wants *wants, struct inspect_result *result)
{
    struct outputs outputs;
    make_outputs(problem, wants, &outputs);
    check_success(context, attn_forward(context, &problem->params, &problem->q, &problem->k,
                                        &problem->v, &outputs.o, &outputs.stats));
    check_success(context, attn_inspect(context, &problem->params, &problem->q, &problem->k,
                                        &outputs.stats, &outputs.inspection));
    copy_outputs(&outputs, wants, false, result);
}

void inspect_solve_forward(attn_context *context, const struct attention_problem *problem,
                           const struct inspect_wants *wants, struct inspect_result *result)
{
    struct outputs outputs, alone;
    make_outputs(problem, wants, &outputs);
    check_success(context, attn_forward_inspect(context, &problem->params, &problem->q, &problem->k,
                                                &problem->v, &outputs.o, &outputs.stats,
                                                &outputs.inspection));
    copy_outputs(&outputs, wants, true, result);

    /* Without statistics it tells the same. */
    struct inspect_result other;
    make_outputs(problem, wants, &alone);
    check_success(context, attn_forward_inspect(context, &problem->params, &problem->q, &problem->k,
                                                &problem->v, &alone.o, NULL, &alone.inspection));
    copy_outputs(&alone, wants, true, &other);
    other.stats = NULL;
    inspect_check_same(&other, result);
}

bool inspect_has_sums(const struct attention_problem *problem)
{
    return !(problem->params.sequences > 0 && problem->params.block_table);
}

static void check_same_numbers(const char *what, const double *actual, const double *expected,
                               size_t count)
{
    for (size_t i = 0; actual && expected && i < count; i++) {
        if (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i])))
            continue;
        test_fail(__FILE__, __LINE__, "%s: number %zu is %.9g, not %.9g", what, i, actual[i],
                  expected[i]);
        return;
    }
}

void inspect_check_same(const struct inspect_result *actual, const struct inspect_result *expected)
{
    const size_t entries =
        actual->top == expected->top ? expected->rows * (size_t)expected->top : 0;
    check_same_numbers("top_weights", actual->top_weights, expected->top_weights, entries);
    check_same_numbers("top_keys", actual->top_keys, expected->top_keys, entries);
    check_same_numbers("entropy", actual->entropy, expected->entropy, expected->rows);
    check_same_numbers("maximum", actual->maximum, expected->maximum, expected->rows);
    check_same_numbers("key_sums", actual->key_sums, expected->key_sums, expected->sums);
    check_same_numbers("o", actual->o, expected->o, expected->outputs);
    check_same_numbers("stats", actual->stats, expected->stats, 2 * expected->rows);
}
