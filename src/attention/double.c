#include "attention/double.h"

#include <math.h>

#include "attention/double_row.h"
#include "attention/row_place.h"
#include "attention/tensor_extent.h"

/* What both calls hand to their items; an item is a row. */
struct double_run {
    const struct attn_problem *problem;
    const struct attn_kernels *kernels;
    char *workspace;
    int64_t bytes_a_thread;

    /* Of attn_double_weights alone. */
    const attn_tensor *stats, *weights;
    const int64_t *begin;
};

int64_t attn_double_bytes(const struct attn_problem *problem)
{
    struct attn_double_row row;
    struct attn_scratch scratch = {0};
    attn_double_row_take(&row, problem, &scratch);
    return scratch.overflow ? -1 : scratch.used;
}

static struct attn_double_row take_row(const struct double_run *run, int thread)
{
    struct attn_double_row row;
    struct attn_scratch scratch = {.base = run->workspace + thread * run->bytes_a_thread};
    attn_double_row_take(&row, run->problem, &scratch);
    return row;
}

static attn_status run_items(struct double_run *run, struct attn_context *context, int64_t items,
                             void (*body)(void *state, int64_t item, int thread))
{
    run->kernels = context->kernels;
    run->bytes_a_thread = attn_double_bytes(run->problem);
    run->workspace = attn_context_workspace(context, 0, run->bytes_a_thread);
    if (!run->workspace)
        return ATTN_ERROR_MEMORY;
    attn_context_run(context, items, body, run);
    return ATTN_SUCCESS;
}

/* output = Σ_j exp(s_j − m)·v_j, times the factors of dropout. */
static void blend_row(struct attn_double_row *row, const struct attn_problem *problem, double m)
{
    int64_t key_head = attn_key_head(problem, row->head);
    for (int64_t c = 0; c < problem->d_v; c++)
        row->output[c] = 0.0;
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->spans[n].begin; j < row->spans[n].end; j++) {
            if (row->scores[j] == -INFINITY)
                continue;
            double p = exp(row->scores[j] - m);
            if (problem->has_dropout)
                p *= row->factors[j];
            struct attn_row_place place = attn_row_place_of(problem, &row->sequence, j);
            const double *v = attn_double_element(&problem->v, place.batch, key_head, place.row, 0);
            for (int64_t c = 0; c < problem->d_v; c++)
                row->output[c] += p * v[c * problem->v.stride[3]];
        }
}

static void forward_row(void *state, int64_t item, int thread)
{
    const struct double_run *run = state;
    const struct attn_problem *problem = run->problem;
    int64_t i = item % problem->queries, h = item / problem->queries % problem->heads;
    int64_t b = item / problem->queries / problem->heads;

    struct attn_double_row row = take_row(run, thread);
    attn_double_row_begin(&row, problem, b, h, i);
    attn_double_row_score(&row, run->kernels, problem);
    if (problem->has_dropout)
        attn_double_row_drop(&row, run->kernels, problem);
    double m, l;
    attn_double_row_sum(&row, problem, &m, &l);
    blend_row(&row, problem, m);

    for (int64_t c = 0; c < problem->d_v; c++)
        *attn_double_element(&problem->o, b, h, i, c) = l == 0.0 ? 0.0 : row.output[c] / l;
    if (problem->stats.data) {
        *attn_double_element(&problem->stats, b, h, i, 0) = m;
        *attn_double_element(&problem->stats, b, h, i, 1) = l;
    }
}

attn_status attn_double_forward(struct attn_context *context, const struct attn_problem *problem)
{
    if (attn_is_empty(&problem->o) && !problem->stats.data)
        return ATTN_SUCCESS;
    struct double_run run = {.problem = problem};
    return run_items(&run, context, problem->batch * problem->heads * problem->queries,
                     forward_row);
}

static void weights_row(void *state, int64_t item, int thread)
{
    const struct double_run *run = state;
    const struct attn_problem *problem = run->problem;
    const attn_tensor *weights = run->weights;
    int64_t out_i = item % weights->shape[2], out_h = item / weights->shape[2] % weights->shape[1];
    int64_t out_b = item / weights->shape[2] / weights->shape[1];
    int64_t b = run->begin[0] + out_b, h = run->begin[1] + out_h, i = run->begin[2] + out_i;
    int64_t first = run->begin[3], wanted = weights->shape[3];

    for (int64_t j = 0; j < wanted; j++)
        *attn_double_element(weights, out_b, out_h, out_i, j) = 0.0;
    struct attn_double_row row = take_row(run, thread);
    attn_double_row_begin(&row, problem, b, h, i);
    double m = *attn_double_element(run->stats, b, h, i, 0);
    double l = *attn_double_element(run->stats, b, h, i, 1);
    if (l == 0.0)
        return;

    /* Columns of the output count rows of the tensor, keys those of the sequence. */
    int64_t behind = first - row.sequence.key_begin;
    attn_double_row_narrow(&row, behind, behind + wanted);
    attn_double_row_score(&row, run->kernels, problem);
    for (int n = 0; n < 2; n++)
        for (int64_t j = row.spans[n].begin; j < row.spans[n].end; j++)
            if (row.scores[j] != -INFINITY)
                *attn_double_element(weights, out_b, out_h, out_i, j - behind) =
                    exp(row.scores[j] - m) / l;
}

attn_status attn_double_weights(struct attn_context *context, const struct attn_problem *problem,
                                const attn_tensor *stats, const int64_t begin[4],
                                const attn_tensor *weights)
{
    if (attn_is_empty(weights))
        return ATTN_SUCCESS;
    struct double_run run = {
        .problem = problem, .stats = stats, .weights = weights, .begin = begin};
    return run_items(&run, context, weights->shape[0] * weights->shape[1] * weights->shape[2],
                     weights_row);
}
