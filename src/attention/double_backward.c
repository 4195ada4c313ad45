/* attn_backward of f64: row by row, each pair of a query and a key that it keeps in the order of
 * the formula. Sums are made in the gradients themselves. */
#include <math.h>

#include "attention/double.h"
#include "attention/double_row.h"
#include "attention/row_place.h"

/* A line is what one thread does in order, so that no two add to the same number: the sequences and
 * key heads of one line. */
struct backward_lines {
    int64_t sequences, key_heads; /* lines along each; 1 where all are one line */
};

struct backward_run {
    const struct attn_problem *problem;
    const struct attn_backward_problem *backward;
    const struct attn_kernels *kernels;
    /* The problem without change_scores, for the scores that it was given; and with nothing but
     * scale and exclusions, for the argument of the soft cap. */
    struct attn_problem before, products;
    struct backward_lines lines;
    char *workspace;
    int64_t bytes_a_thread;
};

/* One query's row, and ∂L/∂ of its scores. */
struct backward_row {
    struct attn_double_row row;
    int64_t batch, head, key_head, i; /* row i of the tensors */
    double *ds;                       /* [Lk]: ∂L/∂s of the kept keys */
    double *saved;                    /* [Lk]: scores of another stage */
    float *gradients;                 /* [ATTN_KEY_BLOCK], what change_gradients sees */
};

static void take_row(struct backward_row *row, const struct attn_problem *problem,
                     struct attn_scratch *scratch)
{
    attn_double_row_take(&row->row, problem, scratch);
    row->ds = attn_scratch_take(scratch, 1, problem->keys, (int64_t)sizeof(double));
    row->saved = attn_scratch_take(scratch, 1, problem->keys, (int64_t)sizeof(double));
    row->gradients = attn_scratch_floats(scratch, 1, ATTN_KEY_BLOCK);
}

static bool keeps(const struct backward_row *row, int64_t j)
{
    return row->row.scores[j] != -INFINITY;
}

static bool keeps_any(const struct backward_row *row)
{
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->row.spans[n].begin; j < row->row.spans[n].end; j++)
            if (keeps(row, j))
                return true;
    return false;
}

/* The scores of an earlier stage into `saved`; those of the row stay. */
static void save_stage(const struct backward_run *run, const struct attn_problem *stage,
                       struct backward_row *row)
{
    struct attn_double_row earlier = row->row;
    earlier.scores = row->saved;
    attn_double_row_score(&earlier, run->kernels, stage);
}

/* D = Σ_c do_c·o_c */
static double row_delta(const struct backward_run *run, const struct backward_row *row)
{
    double sum = 0.0;
    for (int64_t c = 0; c < run->problem->d_v; c++)
        sum += *attn_double_element(&run->backward->d_o, row->batch, row->head, row->i, c) *
               *attn_double_element(&run->problem->o, row->batch, row->head, row->i, c);
    return sum;
}

/* dV_j += p·do, and returns dP_j = do·v_j. */
static double value_gradient(const struct backward_run *run, const struct backward_row *row,
                             int64_t j, double p)
{
    const struct attn_problem *problem = run->problem;
    const struct attn_backward_problem *backward = run->backward;
    struct attn_row_place place = attn_row_place_of(problem, &row->row.sequence, j);
    double sum = 0.0;
    for (int64_t c = 0; c < problem->d_v; c++) {
        double d_o = *attn_double_element(&backward->d_o, row->batch, row->head, row->i, c);
        sum += d_o * *attn_double_element(&problem->v, place.batch, row->key_head, place.row, c);
        if (backward->wants_v)
            *attn_double_element(&backward->d_v, place.batch, row->key_head, place.row, c) +=
                p * d_o;
    }
    return sum;
}

/* p_j = exp(s_j − m)/l, dS_j = p_j·(f_j·dP_j − D), and dV. */
static void differentiate_softmax(const struct backward_run *run, struct backward_row *row,
                                  double m, double l, double delta)
{
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->row.spans[n].begin; j < row->row.spans[n].end; j++) {
            if (!keeps(row, j))
                continue;
            double p = exp(row->row.scores[j] - m) / l;
            double factor = run->problem->has_dropout ? row->row.factors[j] : 1.0;
            double d_p = value_gradient(run, row, j, p * factor);
            row->ds[j] = p * (d_p * factor - delta);
        }
}

/* What change_gradients makes of dS for `count` keys from `first` on. A number that it leaves as it
 * is stays f64, as scores do. */
static void change_gradients(const struct backward_run *run, struct backward_row *row,
                             int64_t first, int64_t count)
{
    for (int64_t t = 0; t < count; t++) {
        row->row.tile[t] = (float)row->saved[first + t];
        row->gradients[t] = keeps(row, first + t) ? (float)row->ds[first + t] : 0.0f;
    }
    const attn_score_tile tile = {
        .sequence = row->row.sequence.index,
        .head = row->head,
        .query = row->row.query,
        .key = first,
        .queries = 1,
        .keys = count,
        .scores = row->row.tile,
        .query_stride = count,
        .key_stride = 1,
    };
    run->problem->change_gradients(run->problem->callback_user, &tile, row->gradients);
    for (int64_t t = 0; t < count; t++)
        if (keeps(row, first + t) && row->gradients[t] != (float)row->ds[first + t])
            row->ds[first + t] = (double)row->gradients[t];
}

static void differentiate_callback(const struct backward_run *run, struct backward_row *row)
{
    if (!run->problem->change_scores)
        return;
    save_stage(run, &run->before, row);
    for (int n = 0; n < 2; n++)
        for (int64_t first = row->row.spans[n].begin; first < row->row.spans[n].end;
             first += ATTN_KEY_BLOCK) {
            int64_t left = row->row.spans[n].end - first;
            change_gradients(run, row, first, left < ATTN_KEY_BLOCK ? left : ATTN_KEY_BLOCK);
        }
}

/* dS through soft_cap · tanh(s / soft_cap) */
static double through_soft_cap(const struct backward_run *run, const struct backward_row *row,
                               int64_t j)
{
    if (!(run->problem->soft_cap > 0.0f))
        return row->ds[j];
    double capped = tanh(row->saved[j] / (double)run->problem->soft_cap);
    return row->ds[j] * (1.0 - capped * capped);
}

static void add_to_bias(const struct backward_run *run, const struct backward_row *row, int64_t j)
{
    *attn_double_element(&run->backward->d_bias, row->batch, row->head, row->i,
                         row->row.sequence.key_begin + j) += row->ds[j];
}

/* dQ += scale·dS_j·k_j and dK_j += scale·dS_j·q */
static void add_to_queries_and_keys(const struct backward_run *run, const struct backward_row *row,
                                    int64_t j, double ds)
{
    const struct attn_problem *problem = run->problem;
    const struct attn_backward_problem *backward = run->backward;
    struct attn_row_place place = attn_row_place_of(problem, &row->row.sequence, j);
    for (int64_t c = 0; c < problem->d_qk; c++) {
        if (backward->wants_q)
            *attn_double_element(&backward->d_q, row->batch, row->head, row->i, c) +=
                ds * *attn_double_element(&problem->k, place.batch, row->key_head, place.row, c);
        if (backward->wants_k)
            *attn_double_element(&backward->d_k, place.batch, row->key_head, place.row, c) +=
                ds * row->row.q[c];
    }
}

static void differentiate_scores(const struct backward_run *run, struct backward_row *row)
{
    differentiate_callback(run, row);
    if (run->problem->soft_cap > 0.0f)
        save_stage(run, &run->products, row);
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->row.spans[n].begin; j < row->row.spans[n].end; j++) {
            if (!keeps(row, j))
                continue;
            if (run->backward->wants_bias)
                add_to_bias(run, row, j);
            add_to_queries_and_keys(run, row, j,
                                    run->problem->scale_f64 * through_soft_cap(run, row, j));
        }
}

/* Row i of the tensors. A row without a key gives nothing, whatever stands in it. */
static void backward_row(const struct backward_run *run, struct backward_row *row)
{
    const struct attn_problem *problem = run->problem;
    attn_double_row_begin(&row->row, problem, row->batch, row->head, row->i);
    attn_double_row_score(&row->row, run->kernels, problem);
    double m = *attn_double_element(&problem->stats, row->batch, row->head, row->i, 0);
    double l = *attn_double_element(&problem->stats, row->batch, row->head, row->i, 1);
    if (l == 0.0 || !keeps_any(row))
        return;
    if (problem->has_dropout)
        attn_double_row_drop(&row->row, run->kernels, problem);
    double delta = row_delta(run, row);
    if (run->backward->wants_sinks && problem->sinks[row->head] != -INFINITY)
        *attn_double_element(&run->backward->d_sinks, 0, row->head, 0, 0) -=
            exp((double)problem->sinks[row->head] - m) / l * delta;
    differentiate_softmax(run, row, m, l, delta);
    differentiate_scores(run, row);
}

/* All queries of a sequence with one key head. */
static void backward_sequence(const struct backward_run *run, struct backward_row *row,
                              int64_t index, int64_t key_head)
{
    const struct attn_problem *problem = run->problem;
    struct attn_sequence sequence = attn_sequence_at(problem, index);
    int64_t group = problem->heads / problem->key_heads;
    row->batch = sequence.batch;
    row->key_head = key_head;
    for (row->head = key_head * group; row->head < (key_head + 1) * group; row->head++)
        for (int64_t n = 0; n < sequence.queries; n++) {
            row->i = sequence.query_begin + n;
            backward_row(run, row);
        }
}

static void backward_line(void *state, int64_t item, int thread)
{
    const struct backward_run *run = state;
    const struct attn_problem *problem = run->problem;
    struct backward_row row;
    struct attn_scratch scratch = {.base = run->workspace + thread * run->bytes_a_thread};
    take_row(&row, problem, &scratch);

    int64_t first_sequence = item / run->lines.key_heads, first_head = item % run->lines.key_heads;
    for (int64_t s = first_sequence; s < problem->sequences; s += run->lines.sequences)
        for (int64_t g = first_head; g < problem->key_heads; g += run->lines.key_heads)
            backward_sequence(run, &row, s, g);
}

/* Sequences that share a bias or sinks are one line, and so are heads that share a bias. */
static struct backward_lines lines_of(const struct attn_problem *problem,
                                      const struct attn_backward_problem *backward)
{
    struct backward_lines lines = {problem->sequences, problem->key_heads};
    if (backward->wants_sinks || (backward->wants_bias && problem->bias.shape[0] == 1))
        lines.sequences = 1;
    if (backward->wants_bias && problem->bias.shape[1] == 1)
        lines.key_heads = 1;
    return lines;
}

static void make_stages(struct backward_run *run)
{
    run->before = *run->problem;
    run->before.change_scores = NULL;
    run->products = run->before;
    run->products.soft_cap = 0.0f;
    run->products.has_bias = false;
    run->products.alibi_slopes = NULL;
}

int64_t attn_double_backward_bytes(const struct attn_problem *problem)
{
    struct backward_row row;
    struct attn_scratch scratch = {0};
    take_row(&row, problem, &scratch);
    return scratch.overflow ? -1 : scratch.used;
}

attn_status attn_double_backward(struct attn_context *context, const struct attn_problem *problem,
                                 const struct attn_backward_problem *backward)
{
    struct backward_run run = {.problem = problem,
                               .backward = backward,
                               .kernels = context->kernels,
                               .lines = lines_of(problem, backward)};
    run.bytes_a_thread = attn_double_backward_bytes(problem);
    run.workspace = attn_context_workspace(context, 0, run.bytes_a_thread);
    if (!run.workspace)
        return ATTN_ERROR_MEMORY;
    make_stages(&run);
    attn_backward_clear(backward);
    attn_context_run(context, run.lines.sequences * run.lines.key_heads, backward_line, &run);
    return ATTN_SUCCESS;
}
