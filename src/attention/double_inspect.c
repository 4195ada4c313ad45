/* Inspection of f64: each number by its definition, one row of scores at a time. */
#include <math.h>

#include "attention/double.h"
#include "attention/double_row.h"

struct inspect_run {
    const struct attn_problem *problem;
    const struct attn_inspected *inspected;
    const struct attn_kernels *kernels;
    char *workspace;
    int64_t bytes_a_thread;
};

/* A row with its final scores, and m and l. */
struct inspected_row {
    struct attn_double_row row;
    double m, l;
};

static struct inspected_row score_row(const struct inspect_run *run, int thread, int64_t b,
                                      int64_t h, int64_t i)
{
    const struct attn_problem *problem = run->problem;
    struct inspected_row result;
    struct attn_scratch scratch = {.base = run->workspace + thread * run->bytes_a_thread};
    attn_double_row_take(&result.row, problem, &scratch);
    attn_double_row_begin(&result.row, problem, b, h, i);
    attn_double_row_score(&result.row, run->kernels, problem);
    if (problem->stats.data) {
        result.m = *attn_double_element(&problem->stats, b, h, i, 0);
        result.l = *attn_double_element(&problem->stats, b, h, i, 1);
    } else {
        attn_double_row_sum(&result.row, problem, &result.m, &result.l);
    }
    return result;
}

/* ln l − t/l with t = Σ exp(s − m)·(s − m), the sink's term among them. */
static double entropy_of(const struct inspected_row *row, const struct attn_problem *problem)
{
    double sink = problem->sinks ? (double)problem->sinks[row->row.head] : -INFINITY;
    double t = sink == -INFINITY ? 0.0 : exp(sink - row->m) * (sink - row->m);
    if (row->l == 0.0)
        return 0.0;
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->row.spans[n].begin; j < row->row.spans[n].end; j++)
            if (row->row.scores[j] != -INFINITY)
                t += exp(row->row.scores[j] - row->m) * (row->row.scores[j] - row->m);
    double entropy = log(row->l) - t / row->l;
    return entropy < 0.0 ? 0.0 : entropy;
}

/* Keys of the `count` largest scores, the best first; returns how many there are. */
static int64_t select_keys(const struct attn_double_row *row, int64_t count,
                           int64_t keys[ATTN_TOP_LIMIT])
{
    int64_t found = 0;
    for (int n = 0; count > 0 && n < 2; n++)
        for (int64_t j = row->spans[n].begin; j < row->spans[n].end; j++) {
            const double s = row->scores[j];
            if (!(s > (found < count ? -INFINITY : row->scores[keys[count - 1]])))
                continue;
            int64_t place = found < count ? found++ : count - 1;
            for (; place > 0 && row->scores[keys[place - 1]] < s; place--)
                keys[place] = keys[place - 1];
            keys[place] = j;
        }
    return found;
}

static double weight_of(const struct inspected_row *row, int64_t key)
{
    return row->l == 0.0 ? 0.0 : exp(row->row.scores[key] - row->m) / row->l;
}

static void inspect_row(void *state, int64_t item, int thread)
{
    const struct inspect_run *run = state;
    const struct attn_problem *problem = run->problem;
    const struct attn_inspected *inspected = run->inspected;
    int64_t i = item % problem->queries, h = item / problem->queries % problem->heads;
    int64_t b = item / problem->queries / problem->heads;
    struct inspected_row row = score_row(run, thread, b, h, i);
    int64_t keys[ATTN_TOP_LIMIT];
    int64_t found = select_keys(&row.row, inspected->top, keys);
    const double nothing = isnan(row.l) ? NAN : 0.0;
    if (inspected->wants_entropy)
        *attn_double_element(&inspected->entropy, b, h, i, 0) = entropy_of(&row, problem);
    if (inspected->wants_maximum)
        *attn_double_element(&inspected->maximum, b, h, i, 0) =
            found > 0 ? weight_of(&row, keys[0]) : nothing;
    for (int64_t n = 0; inspected->wants_top && n < inspected->top; n++) {
        int32_t *key = attn_address(&inspected->top_keys, (int64_t)sizeof *key, b, h, i, n);
        *key = n < found ? (int32_t)(row.row.sequence.key_begin + keys[n]) : -1;
        *attn_double_element(&inspected->top_weights, b, h, i, n) =
            n < found ? weight_of(&row, keys[n]) : nothing;
    }
}

/* All keys of a batch and head, row by row, on top of 0. */
static void sum_keys(void *state, int64_t item, int thread)
{
    const struct inspect_run *run = state;
    const struct attn_problem *problem = run->problem;
    const attn_tensor *sums = &run->inspected->key_sums;
    int64_t h = item % problem->heads, b = item / problem->heads;
    for (int64_t i = run->inspected->query_begin; i < run->inspected->query_end; i++) {
        struct inspected_row row = score_row(run, thread, b, h, i);
        for (int n = 0; n < 2; n++)
            for (int64_t j = row.row.spans[n].begin; j < row.row.spans[n].end; j++)
                if (row.row.scores[j] != -INFINITY)
                    *attn_double_element(sums, b, h, row.row.sequence.key_begin + j, 0) +=
                        weight_of(&row, j);
    }
}

attn_status attn_double_inspect(struct attn_context *context, const struct attn_problem *problem,
                                const struct attn_inspected *inspected)
{
    struct inspect_run run = {.problem = problem,
                              .inspected = inspected,
                              .kernels = context->kernels,
                              .bytes_a_thread = attn_double_bytes(problem)};
    run.workspace = attn_context_workspace(context, 0, run.bytes_a_thread);
    if (!run.workspace)
        return ATTN_ERROR_MEMORY;
    if (attn_inspects_rows(inspected))
        attn_context_run(context, problem->batch * problem->heads * problem->queries, inspect_row,
                         &run);
    attn_inspected_clear_sums(inspected);
    if (inspected->wants_key_sums)
        attn_context_run(context, problem->batch * problem->heads, sum_keys, &run);
    return ATTN_SUCCESS;
}
