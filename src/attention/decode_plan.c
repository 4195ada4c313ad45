#include "attention/decode_plan.h"

#include <inttypes.h>

#include "attention/document_blocks.h"
#include "attention/rows.h"
#include "attention/tensor_extent.h"
#include "base/checked.h"

enum { PARTS_A_THREAD = 4 /* so many, and threads end together without sharing chunks */ };

static int64_t round_up(int64_t count, int64_t step)
{
    return count / step + (count % step > 0);
}

attn_status attn_decode_check(const struct attn_problem *problem, struct attn_error *error)
{
    RETURN_IF(problem->has_dropout, error, ATTN_ERROR_UNSUPPORTED,
              "params.dropout is %g, expected 0: attn_decode has no dropout, use attn_forward",
              (double)problem->params.dropout);
    if (!problem->query_starts) {
        RETURN_IF(problem->queries > ATTN_DECODE_MAX_QUERIES, error, ATTN_ERROR_SHAPE,
                  "q has length %" PRId64 ", expected at most %d queries: use attn_forward",
                  problem->queries, ATTN_DECODE_MAX_QUERIES);
        return ATTN_SUCCESS;
    }
    for (int64_t s = 0; s < problem->sequences; s++) {
        int64_t queries = problem->query_starts[s + 1] - problem->query_starts[s];
        RETURN_IF(queries > ATTN_DECODE_MAX_QUERIES, error, ATTN_ERROR_SHAPE,
                  "sequence %" PRId64 " has %" PRId64
                  " queries, expected at most %d: use attn_forward",
                  s, queries, ATTN_DECODE_MAX_QUERIES);
    }
    return ATTN_SUCCESS;
}

void attn_decode_state_take(struct attn_decode_state *state, int64_t rows, int64_t d_v,
                            struct attn_scratch *scratch)
{
    state->m = attn_scratch_floats(scratch, rows, 1);
    state->l = attn_scratch_floats(scratch, rows, 1);
    state->output = attn_scratch_floats(scratch, rows, attn_decode_width(d_v));
}

void attn_decode_shared_take(struct attn_decode_shared *shared, const struct attn_decode_plan *plan,
                             const struct attn_problem *problem, struct attn_scratch *scratch)
{
    shared->documents = attn_scratch_take(scratch, attn_document_blocks_count(problem), 1,
                                          (int64_t)sizeof *shared->documents);
    int64_t waiting = plan->chunks > 1 ? plan->items : 0;
    attn_decode_state_take(&shared->chunks, waiting * plan->rows, problem->d_v, scratch);
}

static void take_rows(struct attn_decode_rows *rows, const struct attn_problem *problem,
                      const attn_tensor *tensor, struct attn_scratch *scratch)
{
    bool apart = tensor->stride[3] != 1 && tensor->shape[3] > 1;
    bool paged = problem->block_table != NULL, scaled = tensor->type == ATTN_I8;
    rows->table =
        attn_scratch_take(scratch, paged ? ATTN_DECODE_BLOCK : 0, 1, (int64_t)sizeof *rows->table);
    rows->scales =
        attn_scratch_floats(scratch, scaled && (paged || apart) ? ATTN_DECODE_BLOCK : 0, 1);
    rows->copy = attn_scratch_take(scratch, apart ? ATTN_DECODE_BLOCK : 0, tensor->shape[3],
                                   attn_type_size(tensor->type));
}

const struct attn_decode_scratch *attn_decode_scratch_take(const struct attn_decode_plan *plan,
                                                           const struct attn_problem *problem,
                                                           struct attn_scratch *scratch)
{
    int64_t widest = problem->d_qk > problem->d_v ? problem->d_qk : problem->d_v;
    struct attn_decode_scratch parts, *place = attn_scratch_take(scratch, 1, 1, sizeof *place);
    attn_decode_state_take(&parts.total, plan->rows, problem->d_v, scratch);
    attn_decode_state_take(&parts.chunk, plan->rows, problem->d_v, scratch);
    parts.queries = attn_scratch_floats(scratch, plan->rows, attn_decode_width(problem->d_qk));
    parts.scores = attn_scratch_floats(scratch, ATTN_DECODE_BLOCK, ATTN_DECODE_QUERIES);
    parts.row = attn_scratch_floats(scratch, widest, 1);
    parts.narrow = attn_scratch_take(scratch, problem->d_v, 1, (int64_t)sizeof(float));
    parts.bias = attn_scratch_floats(scratch, problem->has_bias ? ATTN_KEY_BLOCK : 0, 1);
    parts.spans = attn_scratch_take(scratch, plan->rows, 1, (int64_t)sizeof(struct attn_key_spans));
    take_rows(&parts.keys, problem, &problem->k, scratch);
    take_rows(&parts.values, problem, &problem->v, scratch);
    if (place)
        *place = parts;
    return place;
}

bool attn_decode_plan_make(struct attn_decode_plan *plan, const struct attn_context *context,
                           const struct attn_problem *problem)
{
    *plan = (struct attn_decode_plan){
        .chunk_keys = ATTN_DECODE_CHUNK,
        .group = problem->heads / problem->key_heads,
        .chunks = 1,
    };
    /* Rounded up, their widths must fit too. */
    const int64_t limit = INT64_MAX - INT16_MAX;
    if (problem->d_qk > limit || problem->d_v > limit)
        return false;
    /* Batches without lengths of their own are alike. */
    bool alike = !problem->query_starts && !problem->key_lengths && problem->sequences > 0;
    int64_t queries = 0, keys = 0;
    for (int64_t s = 0; s < (alike ? 1 : problem->sequences); s++) {
        struct attn_sequence sequence = attn_sequence_at(problem, s);
        queries = sequence.queries > queries ? sequence.queries : queries;
        keys = sequence.keys > keys ? sequence.keys : keys;
    }
    /* Rows fill memory, so that no product of their counts leaves 64 bits. */
    int64_t rows = plan->group * queries;
    plan->pass_queries = rows < ATTN_DECODE_QUERIES ? rows : ATTN_DECODE_QUERIES;
    plan->rows = rows < 1 ? 1 : rows < ATTN_DECODE_ROWS ? rows : ATTN_DECODE_ROWS;
    plan->row_groups = round_up(rows, ATTN_DECODE_ROWS);
    /* Packed sequences without a query are parts too, so that parts may be more than rows. */
    if (!attn_checked_multiply(problem->sequences, problem->key_heads, &plan->parts) ||
        !attn_checked_multiply(plan->parts, plan->row_groups, &plan->parts))
        return false;
    if (context->parallel.threads > 1 && plan->parts / PARTS_A_THREAD < context->parallel.threads)
        plan->chunks = keys > ATTN_DECODE_CHUNK ? round_up(keys, ATTN_DECODE_CHUNK) : 1;
    plan->items = plan->parts * plan->chunks;

    struct attn_scratch shared = {NULL, 0, false}, own = {NULL, 0, false};
    struct attn_decode_shared shared_parts;
    attn_decode_shared_take(&shared_parts, plan, problem, &shared);
    attn_decode_scratch_take(plan, problem, &own);
    plan->shared_bytes = shared.used;
    plan->bytes_a_thread = own.used;
    return !shared.overflow && !own.overflow;
}
