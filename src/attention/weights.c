/* The weights that a forward pass used, rebuilt from its row statistics: any part of them. */
#include "attn.h"

#include <inttypes.h>
#include <math.h>

#include "attention/double.h"
#include "attention/overlap.h"
#include "attention/panel.h"
#include "attention/tensor_check.h"
#include "attention/weights.h"

struct rebuild {
    const struct attn_problem *problem;
    const struct attn_kernels *kernels;
    const attn_tensor *stats, *weights;
    int64_t begin[4];   /* batch, head, query, key */
    int64_t row_groups; /* of a head: as many rows as a full panel has */
    char *workspace;
    int64_t bytes_a_thread;
};

/* One thread's memory. */
struct weights_scratch {
    struct attn_tile_scratch tile;
    float *queries; /* [d_qk][lanes] */
    float *row;     /* [d_qk][lanes] */
    float *keys;    /* [ATTN_KEY_BLOCK][d_qk] */
    float *m, *l, *unused_maximum;
};

static void take_scratch(struct weights_scratch *parts, const struct attn_kernels *kernels,
                         const struct attn_problem *problem, struct attn_scratch *scratch)
{
    int lanes = 2 * kernels->vector_lanes;
    attn_tile_scratch_take(&parts->tile, problem, scratch);
    parts->queries = attn_scratch_floats(scratch, problem->d_qk, lanes);
    parts->row = attn_scratch_floats(scratch, problem->d_qk, lanes);
    parts->keys = attn_scratch_floats(
        scratch, attn_rows_need_scratch(problem, &problem->k) ? ATTN_KEY_BLOCK : 0, problem->d_qk);
    parts->m = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    parts->l = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    parts->unused_maximum = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
}

int64_t attn_weights_bytes(const struct attn_kernels *kernels, const struct attn_problem *problem)
{
    struct weights_scratch counted;
    struct attn_scratch scratch = {NULL, 0, false};
    take_scratch(&counted, kernels, problem, &scratch);
    return scratch.overflow ? -1 : scratch.used;
}

/* Rows of one sequence and head: their places among the queries and in the output. */
struct segment {
    struct attn_sequence sequence;
    int64_t head, query, rows;
    int lanes;
    float *out; /* of the first row; column 0 of it is key wanted.begin of the sequence */
    struct attn_key_span wanted; /* keys of the sequence; may lie outside it */
};

static void write_zeros(const struct rebuild *run, const struct segment *segment, int64_t begin,
                        int64_t end)
{
    const int64_t *stride = run->weights->stride;
    for (int64_t n = 0; n < segment->rows; n++)
        for (int64_t j = begin; j < end; j++)
            segment->out[n * stride[2] + (j - segment->wanted.begin) * stride[3]] = 0.0f;
}

/* Weights of keys span.begin..span.end−1, at most a block; false where all of them are 0, with
 * nothing written. */
static bool rebuild_tile(const struct rebuild *run, const struct weights_scratch *scratch,
                         const struct segment *segment, struct attn_key_span span)
{
    const struct attn_problem *problem = run->problem;
    const struct attn_kernels *kernels = run->kernels;
    const int64_t *stride = run->weights->stride;
    int64_t keys = span.end - span.begin;
    const struct attn_tile tile = {.sequence = &segment->sequence,
                                   .head = segment->head,
                                   .query = segment->query,
                                   .key = span.begin,
                                   .rows = segment->rows,
                                   .keys = keys,
                                   .lanes = segment->lanes};
    struct attn_rows rows =
        attn_key_rows(kernels, problem, &segment->sequence, attn_key_head(problem, segment->head),
                      span.begin, keys, scratch->keys);
    if (!attn_tile_scores(kernels, problem, &tile, scratch->queries, rows, &scratch->tile,
                          scratch->unused_maximum))
        return false;
    float *s = scratch->tile.scores;
    kernels->weights(s, segment->lanes, keys, scratch->m, scratch->l);
    kernels->unpack_output(s, segment->lanes, keys,
                           segment->out + (span.begin - segment->wanted.begin) * stride[3],
                           stride[2], stride[3], segment->rows);
    return true;
}

static void rebuild_segment(const struct rebuild *run, const struct weights_scratch *scratch,
                            const struct segment *segment)
{
    const struct attn_problem *problem = run->problem;
    int64_t row = segment->sequence.query_begin + segment->query;
    for (int n = 0; n < segment->lanes; n++) {
        bool used = n < segment->rows;
        scratch->m[n] =
            used ? *attn_element(run->stats, segment->sequence.batch, segment->head, row + n, 0)
                 : 0.0f;
        scratch->l[n] =
            used ? *attn_element(run->stats, segment->sequence.batch, segment->head, row + n, 1)
                 : 0.0f;
        scratch->unused_maximum[n] = -INFINITY;
    }
    attn_pack_queries(run->kernels, problem, &segment->sequence, segment->head, segment->query,
                      segment->rows, segment->lanes, scratch->row, scratch->queries);

    struct attn_key_spans kept = attn_keys_of_rows(problem, &segment->sequence, segment->head,
                                                   segment->query, segment->rows);
    struct attn_key_span wanted = segment->wanted;
    int64_t done = wanted.begin;
    int64_t begin = wanted.begin > 0 ? wanted.begin : 0;
    int64_t end = wanted.end < segment->sequence.keys ? wanted.end : segment->sequence.keys;
    for (int64_t block = begin; block < end; block += ATTN_KEY_BLOCK) {
        int64_t block_end = block + ATTN_KEY_BLOCK < end ? block + ATTN_KEY_BLOCK : end;
        struct attn_key_span span = attn_keys_within(&kept, block, block_end);
        if (span.begin < block)
            span.begin = block;
        if (span.begin >= span.end || !rebuild_tile(run, scratch, segment, span))
            continue;
        write_zeros(run, segment, done, span.begin);
        done = span.end;
    }
    write_zeros(run, segment, done, wanted.end);
}

static void rebuild_rows(void *state, int64_t item, int thread)
{
    const struct rebuild *run = state;
    const attn_tensor *weights = run->weights;
    int vector_lanes = run->kernels->vector_lanes;
    struct weights_scratch scratch;
    struct attn_scratch memory = {run->workspace + thread * run->bytes_a_thread, 0, false};
    take_scratch(&scratch, run->kernels, run->problem, &memory);

    int64_t out_head = item / run->row_groups % weights->shape[1];
    int64_t out_batch = item / run->row_groups / weights->shape[1];
    int64_t out_row = item % run->row_groups * (2 * vector_lanes);
    int64_t out_end = out_row + 2 * vector_lanes;
    if (out_end > weights->shape[2])
        out_end = weights->shape[2];
    while (out_row < out_end) {
        int64_t row = run->begin[2] + out_row;
        struct segment segment = {.head = run->begin[1] + out_head};
        segment.sequence = attn_sequence_at(
            run->problem, attn_sequence_of_row(run->problem, run->begin[0] + out_batch, row));
        segment.query = row - segment.sequence.query_begin;
        segment.rows = segment.sequence.queries - segment.query;
        if (segment.rows > out_end - out_row)
            segment.rows = out_end - out_row;
        segment.lanes = segment.rows <= vector_lanes ? vector_lanes : 2 * vector_lanes;
        segment.wanted.begin = run->begin[3] - segment.sequence.key_begin;
        segment.wanted.end = segment.wanted.begin + weights->shape[3];
        segment.out = attn_element(weights, out_batch, out_head, out_row, 0);
        rebuild_segment(run, &scratch, &segment);
        out_row += segment.rows;
    }
}

/* Checks stats, the wanted part and the output. */
static attn_status resolve_part(struct rebuild *run, const attn_tensor *stats,
                                const int64_t begin[4], const attn_tensor *weights,
                                struct attn_error *error)
{
    const struct attn_problem *problem = run->problem;
    unsigned type = problem->q.type == ATTN_F64 ? ATTN_TYPES_F64 : ATTN_TYPES_F32;
    attn_status status = attn_check_tensor(stats, "stats", type, error);
    if (status)
        return status;
    const int64_t stats_shape[4] = {problem->batch, problem->heads, problem->queries, 2};
    status = attn_check_shape(stats, "stats", stats_shape, error);
    if (!status)
        status = attn_check_tensor(weights, "weights", type, error);
    if (status)
        return status;

    const int64_t full[4] = {problem->batch, problem->heads, problem->queries, problem->keys};
    const char *const axes[4] = {"batch", "head", "query", "key"};
    for (int axis = 0; axis < 4; axis++) {
        int64_t first = begin ? begin[axis] : 0;
        RETURN_IF(first < 0 || first > full[axis] || weights->shape[axis] > full[axis] - first,
                  error, ATTN_ERROR_SHAPE,
                  "weights want %" PRId64 " from %s %" PRId64
                  " on, expected a part of 0 to %" PRId64,
                  weights->shape[axis], axes[axis], first, full[axis]);
        run->begin[axis] = first;
    }
    status = attn_check_output(problem, weights, "weights", false, error);
    RETURN_IF(!status && attn_overlap(weights, stats), error, ATTN_ERROR_OVERLAP,
              "weights and stats share memory, expected an output apart from all inputs");
    run->stats = stats;
    run->weights = weights;
    return status;
}

static attn_status rebuild(attn_context *context, const attn_params *params, const attn_tensor *q,
                           const attn_tensor *k, const attn_tensor *stats, const int64_t begin[4],
                           const attn_tensor *weights)
{
    struct attn_problem problem;
    struct rebuild run = {.problem = &problem};
    attn_status status = attn_problem_resolve(&problem, context, params, q, k);
    run.kernels = context->kernels;
    if (!status)
        status = resolve_part(&run, stats, begin, weights, &context->error);
    if (status)
        return status;
    for (int axis = 0; axis < 4; axis++)
        if (weights->shape[axis] == 0)
            return ATTN_SUCCESS;
    if (problem.q.type == ATTN_F64)
        return attn_double_weights(context, &problem, stats, run.begin, weights);

    run.bytes_a_thread = attn_weights_bytes(context->kernels, &problem);
    run.workspace = attn_context_workspace(context, 0, run.bytes_a_thread);
    if (!run.workspace)
        return ATTN_ERROR_MEMORY;
    int64_t lanes = 2 * run.kernels->vector_lanes;
    run.row_groups = weights->shape[2] / lanes + (weights->shape[2] % lanes > 0);
    attn_context_run(context, run.row_groups * weights->shape[0] * weights->shape[1], rebuild_rows,
                     &run);
    return ATTN_SUCCESS;
}

attn_status attn_weights(attn_context *context, const attn_params *params, const attn_tensor *q,
                         const attn_tensor *k, const attn_tensor *stats, const int64_t begin[4],
                         const attn_tensor *weights)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = rebuild(context, params, q, k, stats, begin, weights);
    attn_call_end(modes);
    return status;
}
