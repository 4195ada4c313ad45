/* attn_decode: few queries, many keys, at the speed of memory. */
#include "attn.h"

#include <string.h>

#include "attention/decode_item.h"
#include "attention/document_blocks.h"
#include "attention/double.h"

struct decode_run {
    const struct attn_problem *problem;
    const struct attn_kernels *kernels;
    struct attn_decode_plan plan;
    struct attn_decode_shared shared;
    char *workspace; /* of the threads */
};

/* Every thread's memory begins with its parts: looking for them again at each item would take as
 * long as a few keys. */
static void take_scratch(const struct decode_run *run, int threads)
{
    for (int thread = 0; thread < threads; thread++) {
        struct attn_scratch memory = {run->workspace + thread * run->plan.bytes_a_thread, 0, false};
        attn_decode_scratch_take(&run->plan, run->problem, &memory);
    }
}

static const struct attn_decode_scratch *scratch_of(const struct decode_run *run, int thread)
{
    return (const void *)(run->workspace + thread * run->plan.bytes_a_thread);
}

/* Rows first..first+rows−1 of a key head, with the thread's memory. */
static void open_rows(struct attn_decode_item *item, const struct decode_run *run, int64_t sequence,
                      int64_t key_head, int64_t first, int64_t rows, int thread)
{
    item->kernels = run->kernels;
    item->problem = run->problem;
    item->sequence = attn_sequence_at(run->problem, sequence);
    item->key_head = key_head;
    item->group = run->plan.group;
    item->first = first;
    int64_t left = item->group * item->sequence.queries - first;
    item->rows = left < 0 ? 0 : left < rows ? left : rows;
    item->scratch = scratch_of(run, thread);
    attn_decode_item_begin(item);
}

static void open_part(struct attn_decode_item *item, const struct decode_run *run, int64_t part,
                      int thread)
{
    int64_t groups = run->plan.row_groups, key_heads = run->problem->key_heads;
    open_rows(item, run, part / groups / key_heads, part / groups % key_heads,
              part % groups * ATTN_DECODE_ROWS, ATTN_DECODE_ROWS, thread);
}

static int64_t chunk_count(const struct attn_decode_item *item)
{
    return item->sequence.keys / ATTN_DECODE_CHUNK + (item->sequence.keys % ATTN_DECODE_CHUNK > 0);
}

static void begin_total(struct attn_decode_item *item)
{
    const struct attn_problem *problem = item->problem;
    const struct attn_decode_state *total = &item->scratch->total;
    for (int64_t row = 0; row < item->rows; row++)
        attn_decode_begin_row(problem, attn_decode_head(item, row), total->m + row, total->l + row);
    memset(total->output, 0,
           (size_t)(item->rows * attn_decode_width(problem->d_v)) * sizeof *total->output);
}

/* Without a sink the first chunk is where the total begins: few keys are not moved again. */
static bool begins_with_chunk(const struct attn_decode_item *item)
{
    return !item->problem->sinks && item->sequence.keys > 0;
}

static void copy_chunk(struct attn_decode_item *item, const struct attn_decode_state *chunk)
{
    const struct attn_decode_state *total = &item->scratch->total;
    size_t rows = (size_t)item->rows, width = (size_t)attn_decode_width(item->problem->d_v);
    memcpy(total->m, chunk->m, rows * sizeof *total->m);
    memcpy(total->l, chunk->l, rows * sizeof *total->l);
    memcpy(total->output, chunk->output, rows * width * sizeof *total->output);
}

static void merge_chunk(struct attn_decode_item *item, const struct attn_decode_state *chunk)
{
    const int64_t d_v = item->problem->d_v;
    for (int64_t row = 0; row < item->rows; row++) {
        struct attn_decode_state total = attn_decode_state_at(&item->scratch->total, row, d_v);
        struct attn_decode_state part = attn_decode_state_at(chunk, row, d_v);
        item->kernels->decode->merge(total.m, total.l, total.output, part.m[0], part.l[0],
                                     part.output, attn_decode_width(d_v));
    }
}

/* Where the state of an item's chunk waits. */
static struct attn_decode_state waiting(const struct decode_run *run, int64_t part, int64_t chunk)
{
    return attn_decode_state_at(
        &run->shared.chunks, (part * run->plan.chunks + chunk) * run->plan.rows, run->problem->d_v);
}

static void decode_part(void *state, int64_t part, int thread)
{
    struct attn_decode_item item;
    open_part(&item, state, part, thread);
    int64_t done = begins_with_chunk(&item);
    if (done)
        attn_decode_take_chunk(&item, 0, &item.scratch->total);
    else
        begin_total(&item);
    for (int64_t chunk = done; chunk < chunk_count(&item); chunk++) {
        attn_decode_take_chunk(&item, chunk, &item.scratch->chunk);
        merge_chunk(&item, &item.scratch->chunk);
    }
    attn_decode_item_end(&item);
}

static void decode_chunk(void *state, int64_t index, int thread)
{
    const struct decode_run *run = state;
    int64_t part = index / run->plan.chunks, chunk = index % run->plan.chunks;
    struct attn_decode_item item;
    open_part(&item, run, part, thread);
    if (chunk >= chunk_count(&item))
        return;
    struct attn_decode_state place = waiting(run, part, chunk);
    attn_decode_take_chunk(&item, chunk, &place);
}

static void merge_part(void *state, int64_t part, int thread)
{
    const struct decode_run *run = state;
    struct attn_decode_item item;
    open_part(&item, run, part, thread);
    int64_t done = begins_with_chunk(&item);
    if (done) {
        struct attn_decode_state place = waiting(run, part, 0);
        copy_chunk(&item, &place);
    } else {
        begin_total(&item);
    }
    for (int64_t chunk = done; chunk < chunk_count(&item); chunk++) {
        struct attn_decode_state place = waiting(run, part, chunk);
        merge_chunk(&item, &place);
    }
    attn_decode_item_end(&item);
}

/* Rows behind the last packed sequence belong to none and keep no key; they may be many. */
static void write_rows_of_none(const struct decode_run *run)
{
    const struct attn_problem *problem = run->problem;
    int64_t rows = run->plan.group * attn_sequence_at(problem, problem->sequences).queries;
    for (int64_t key_head = 0; key_head < problem->key_heads; key_head++)
        for (int64_t row = 0; row < rows; row++) {
            struct attn_decode_item item;
            open_rows(&item, run, problem->sequences, key_head, row, 1, 0);
            begin_total(&item);
            attn_decode_item_end(&item);
        }
}

static attn_status decode(attn_context *context, const attn_params *params, const attn_tensor *q,
                          const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                          const attn_tensor *stats)
{
    struct attn_problem problem;
    attn_status status = attn_problem_resolve_call(&problem, context, params, q, k, v, o, stats);
    if (!status)
        status = attn_decode_check(&problem, &context->error);
    if (status)
        return status;
    if (problem.batch == 0 || problem.heads == 0 || problem.queries == 0 ||
        (problem.d_v == 0 && !stats))
        return ATTN_SUCCESS;
    if (problem.q.type == ATTN_F64)
        return attn_double_forward(context, &problem);

    struct decode_run run = {.problem = &problem, .kernels = context->kernels};
    if (!attn_decode_plan_make(&run.plan, context, &problem)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    char *memory = attn_context_workspace(context, run.plan.shared_bytes, run.plan.bytes_a_thread);
    if (!memory)
        return ATTN_ERROR_MEMORY;
    struct attn_scratch shared = {memory, 0, false};
    attn_decode_shared_take(&run.shared, &run.plan, &problem, &shared);
    if (problem.query_documents) {
        attn_document_blocks_fill(&problem, run.shared.documents);
        problem.document_blocks = run.shared.documents;
    }
    run.workspace = memory + run.plan.shared_bytes;
    take_scratch(&run, context->parallel.threads);

    if (run.plan.chunks == 1) {
        attn_context_run(context, run.plan.parts, decode_part, &run);
    } else {
        attn_context_run(context, run.plan.items, decode_chunk, &run);
        attn_context_run(context, run.plan.parts, merge_part, &run);
    }
    if (problem.query_starts)
        write_rows_of_none(&run);
    return ATTN_SUCCESS;
}

attn_status attn_decode(attn_context *context, const attn_params *params, const attn_tensor *q,
                        const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                        const attn_tensor *stats)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = decode(context, params, q, k, v, o, stats);
    attn_call_end(modes);
    return status;
}
