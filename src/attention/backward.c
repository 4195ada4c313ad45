/* attn_backward: chunks of keys gather dK and dV while panels of queries go by, and dQ is gathered
 * from the chunks (backward_plan.h). */
#include "attn.h"

#include <math.h>
#include <string.h>

#include "attention/backward_bias.h"
#include "attention/backward_tile.h"
#include "attention/document_blocks.h"
#include "attention/double.h"

/* The keys of a block that some of the panels keep. */
static struct attn_key_span keys_of_block(const struct attn_gradient_panel *panels, int64_t count,
                                          int64_t block)
{
    struct attn_key_span all = {0, 0};
    for (int64_t p = 0; p < count; p++)
        all = attn_span_join(all, attn_keys_within(&panels[p].keys, block, block + ATTN_KEY_BLOCK));
    return all;
}

/* One block of keys with all panels that keep some of it. Meanwhile the next block comes nearer, a
 * part with each panel. */
static void take_block(const struct attn_backward_item *item, struct attn_gradient_panel *panels,
                       int64_t count, int64_t first)
{
    struct attn_key_span all = keys_of_block(panels, count, first);
    if (attn_span_is_empty(all))
        return;
    struct attn_key_span next = {0, 0};
    if (first + ATTN_KEY_BLOCK < item->keys.end)
        next = keys_of_block(panels, count, first + ATTN_KEY_BLOCK);
    int64_t next_keys = attn_span_is_empty(next) ? 0 : next.end - next.begin;
    struct attn_gradient_block block;
    attn_gradient_block_read(&block, item, all);
    for (int64_t p = 0; p < count; p++) {
        int64_t ahead = next_keys * p / count, ahead_end = next_keys * (p + 1) / count;
        attn_rows_prefetch(&item->run->problem, &item->sequence, item->key_head, next.begin + ahead,
                           ahead_end - ahead);
        struct attn_key_span span =
            attn_keys_within(&panels[p].keys, first, first + ATTN_KEY_BLOCK);
        if (!attn_span_is_empty(span))
            attn_gradient_tile(item, &panels[p], &block, span);
    }
}

/* What the panels keep of `keys`, block by block. */
static void take_keys(const struct attn_backward_item *item, struct attn_gradient_panel *panels,
                      int64_t count, struct attn_key_span keys)
{
    if (keys.begin < item->keys.begin)
        keys.begin = item->keys.begin;
    if (keys.end > item->keys.end)
        keys.end = item->keys.end;
    for (int64_t block = keys.begin - keys.begin % ATTN_KEY_BLOCK; block < keys.end;
         block += ATTN_KEY_BLOCK)
        take_block(item, panels, count, block);
}

/* Whether anything is wanted that the scores lead to. */
static bool wants_scores(const struct attn_backward_problem *backward)
{
    return backward->wants_q || backward->wants_k || backward->wants_v || backward->wants_bias;
}

static void take_panels(const struct attn_backward_item *item, int64_t first, int64_t count)
{
    struct attn_gradient_panel *panels = item->scratch->panels;
    struct attn_key_span prefix = {0, 0}, rest = {0, 0};
    for (int64_t p = 0; p < count; p++) {
        attn_backward_panel_begin(item, &panels[p], first + p);
        prefix = attn_span_join(prefix, panels[p].keys.prefix);
        rest = attn_span_join(rest, panels[p].keys.rest);
    }
    /* A block may hold keys of both. */
    int64_t prefix_end =
        prefix.end + (ATTN_KEY_BLOCK - prefix.end % ATTN_KEY_BLOCK) % ATTN_KEY_BLOCK;
    if (rest.begin < prefix_end)
        rest.begin = prefix_end;
    if (wants_scores(&item->run->backward)) {
        take_keys(item, panels, count, prefix);
        take_keys(item, panels, count, rest);
    }
    for (int64_t p = 0; p < count; p++)
        attn_backward_panel_end(item, &panels[p]);
}

/* sums[keys][width] to the rows of a gradient that are the item's keys; behind the sequence's last
 * key the rows of its part get zeros. */
static void write_sums(const struct attn_backward_item *item, int64_t part,
                       const attn_tensor *gradient, const float *sums, int64_t width)
{
    const struct attn_backward_run *run = item->run;
    struct attn_key_span rows = attn_backward_part_rows(&run->problem, part);
    int64_t batch = item->sequence.batch;
    attn_write_rows(run->kernels, gradient, batch, item->key_head, rows.begin + item->keys.begin,
                    item->keys.end - item->keys.begin, sums, width);
    if (item->chunk + 1 < attn_backward_chunks(&run->plan, &run->problem, part))
        return;
    float *zeros = item->scratch->row;
    memset(zeros, 0, (size_t)width * sizeof *zeros);
    attn_write_rows(run->kernels, gradient, batch, item->key_head, rows.begin + item->sequence.keys,
                    rows.end - rows.begin - item->sequence.keys, zeros, 0);
}

static void begin_sums(const struct attn_backward_item *item)
{
    const struct attn_backward_plan *plan = &item->run->plan;
    struct attn_backward_scratch *scratch = item->scratch;
    size_t keys = (size_t)(item->keys.end - item->keys.begin);
    memset(scratch->d_k, 0, keys * (size_t)plan->key_width * sizeof *scratch->d_k);
    memset(scratch->d_v, 0, keys * (size_t)plan->value_width * sizeof *scratch->d_v);
    memset(scratch->finite, 0,
           (size_t)(plan->chunk_rows / ATTN_KEY_BLOCK) * sizeof *scratch->finite);
    for (int n = 0; n < ATTN_MAX_LANES; n++)
        scratch->unused_maximum[n] = -INFINITY;
}

static void end_sums(const struct attn_backward_item *item, int64_t part)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_backward_plan *plan = &run->plan;
    struct attn_backward_scratch *scratch = item->scratch;
    int64_t numbers = (item->keys.end - item->keys.begin) * plan->key_width;
    if (run->backward.wants_k) {
        for (int64_t i = 0; i < numbers; i++)
            scratch->d_k[i] *= run->problem.scale;
        write_sums(item, part, &run->backward.d_k, scratch->d_k, plan->key_width);
    }
    if (run->backward.wants_v)
        write_sums(item, part, &run->backward.d_v, scratch->d_v, plan->value_width);
}

static void run_item(const struct attn_backward_run *run, int64_t part, int64_t key_head,
                     int64_t chunk, int thread)
{
    char *memory = run->workspace + thread * run->plan.bytes_a_thread;
    struct attn_backward_item item = {
        .run = run,
        .sequence = attn_sequence_at(&run->problem, part),
        .key_head = key_head,
        .chunk = chunk,
        .scratch = (struct attn_backward_scratch *)(void *)memory,
    };
    int64_t chunks = attn_backward_chunks(&run->plan, &run->problem, part);
    if (chunk >= chunks)
        return;
    item.keys = attn_backward_chunk(&item.sequence, chunk, chunks);
    begin_sums(&item);
    /* Evenly: a last pass of few panels would read all of K and V for them. */
    int64_t panels = attn_backward_panels(&item), most = run->plan.panels_a_pass;
    int64_t passes = panels / most + (panels % most > 0);
    for (int64_t pass = 0; pass < passes; pass++) {
        int64_t first = pass * panels / passes;
        take_panels(&item, first, (pass + 1) * panels / passes - first);
    }
    end_sums(&item, part);
}

/* Index `line` of `lines` along one axis: that one of `count`, or all where they are one line. */
static struct attn_key_span along(int64_t line, int64_t lines, int64_t count)
{
    return lines == 1 ? (struct attn_key_span){0, count} : (struct attn_key_span){line, line + 1};
}

static void run_line(void *state, int64_t line, int thread)
{
    const struct attn_backward_run *run = state;
    const struct attn_backward_plan *plan = &run->plan;
    /* First chunks come first: with a causal mask most queries keep them. */
    int64_t heads = plan->line_heads, parts = plan->line_parts;
    struct attn_key_span head = along(line % heads, heads, run->problem.key_heads);
    struct attn_key_span part = along(line / heads % parts, parts, plan->parts);
    struct attn_key_span chunk = along(line / heads / parts, plan->line_chunks, plan->chunks);
    for (int64_t p = part.begin; p < part.end; p++)
        for (int64_t h = head.begin; h < head.end; h++)
            for (int64_t c = chunk.begin; c < chunk.end; c++)
                run_item(run, p, h, c, thread);
}

/* One row of dQ: what its chunks have left, in their order. */
static void sum_row(const struct attn_backward_run *run, int64_t index, float *sum)
{
    const struct attn_problem *problem = &run->problem;
    int64_t d_qk = problem->d_qk, all = problem->batch * problem->heads * problem->queries;
    int64_t row = index % problem->queries, head = index / problem->queries % problem->heads;
    int64_t batch = index / problem->queries / problem->heads;
    int64_t part = attn_sequence_of_row(problem, batch, row);
    int64_t chunks = attn_backward_chunks(&run->plan, problem, part);
    memcpy(sum, run->shared.d_q + index * d_qk, (size_t)d_qk * sizeof *sum);
    for (int64_t chunk = 1; chunk < chunks; chunk++) {
        const float *added = run->shared.d_q + (chunk * all + index) * d_qk;
        for (int64_t c = 0; c < d_qk; c++)
            sum[c] += added[c];
    }
    for (int64_t c = 0; c < d_qk; c++)
        sum[c] *= problem->scale;
    attn_write_rows(run->kernels, &run->backward.d_q, batch, head, row, 1, sum, d_qk);
}

enum { ROWS_A_SUM = 64 };

static void sum_rows(void *state, int64_t item, int thread)
{
    const struct attn_backward_run *run = state;
    const struct attn_problem *problem = &run->problem;
    char *memory = run->workspace + thread * run->plan.bytes_a_thread;
    const struct attn_backward_scratch *scratch = (struct attn_backward_scratch *)(void *)memory;
    int64_t all = problem->batch * problem->heads * problem->queries;
    int64_t end = (item + 1) * ROWS_A_SUM < all ? (item + 1) * ROWS_A_SUM : all;
    for (int64_t row = item * ROWS_A_SUM; row < end; row++)
        sum_row(run, row, scratch->row);
}

static attn_status run_all(attn_context *context, struct attn_backward_run *run)
{
    struct attn_problem *problem = &run->problem;
    if (!attn_backward_plan_make(&run->plan, context, problem, &run->backward)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    char *memory =
        attn_context_workspace(context, run->plan.shared_bytes, run->plan.bytes_a_thread);
    if (!memory)
        return ATTN_ERROR_MEMORY;
    struct attn_scratch shared = {memory, 0, false};
    attn_backward_shared_take(&run->shared, &run->plan, problem, &run->backward, &shared);
    if (problem->key_documents) {
        attn_document_blocks_fill(problem, run->shared.documents);
        problem->document_blocks = run->shared.documents;
    }
    run->workspace = memory + run->plan.shared_bytes;
    for (int thread = 0; thread < context->parallel.threads; thread++) {
        struct attn_scratch scratch = {run->workspace + thread * run->plan.bytes_a_thread, 0,
                                       false};
        attn_backward_scratch_take(&run->plan, problem, &scratch);
    }
    problem->dot_values = run->plan.dots;
    run->exact = *problem;
    run->exact.precision = ATTN_PRECISION_EXACT;

    if (run->backward.wants_bias)
        attn_context_run(context, attn_backward_bias_rows(run), attn_backward_clear_bias_row, run);
    attn_context_run(context, attn_backward_lines(&run->plan), run_line, run);
    if (run->backward.wants_q && run->plan.chunks > 1 && problem->d_qk > 0) {
        int64_t rows = problem->batch * problem->heads * problem->queries;
        attn_context_run(context, rows / ROWS_A_SUM + (rows % ROWS_A_SUM > 0), sum_rows, run);
    }
    if (run->backward.wants_sinks)
        attn_context_run(context, problem->heads, attn_backward_sink, run);
    return ATTN_SUCCESS;
}

static attn_status backward(attn_context *context, const attn_params *params, const attn_tensor *q,
                            const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                            const attn_tensor *stats, const attn_tensor *d_o,
                            const attn_gradients *gradients)
{
    struct attn_backward_run run = {0};
    struct attn_problem *problem = &run.problem;
    attn_status status = attn_backward_resolve(problem, &run.backward, context, params, q, k, v, o,
                                               stats, d_o, gradients);
    run.kernels = context->kernels;
    if (status)
        return status;
    if (problem->batch == 0 || problem->heads == 0 || problem->queries == 0 || problem->keys == 0 ||
        problem->d_v == 0) {
        attn_backward_clear(&run.backward);
        return ATTN_SUCCESS;
    }
    if (problem->q.type == ATTN_F64)
        return attn_double_backward(context, problem, &run.backward);
    return run_all(context, &run);
}

attn_status attn_backward(attn_context *context, const attn_params *params, const attn_tensor *q,
                          const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                          const attn_tensor *stats, const attn_tensor *d_o,
                          const attn_gradients *gradients)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = backward(context, params, q, k, v, o, stats, d_o, gradients);
    attn_call_end(modes);
    return status;
}
