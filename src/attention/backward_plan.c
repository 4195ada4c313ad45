#include "attention/backward_plan.h"

#include "attention/document_blocks.h"
#include "base/checked.h"

enum {
    PASS_BYTES = 512 * 1024, /* what the panels of a pass may take: half of an L2 cache */
    ITEMS = 16,              /* at least, as far as chunks can give them, for threads to share */
    LEAST_CHUNK = 1024       /* keys: below that, packing the panels once more does not pay */
};

static int64_t round_up(int64_t count, int64_t step)
{
    return count / step + (count % step > 0);
}

/* Elements of f32 in whole cache lines. */
static int64_t padded(int64_t width)
{
    const int64_t line = ATTN_ALIGNMENT / (int64_t)sizeof(float);
    return round_up(width, line) * line;
}

struct attn_key_span attn_backward_part_rows(const struct attn_problem *problem, int64_t part)
{
    if (!problem->key_starts)
        return (struct attn_key_span){0, problem->keys};
    return (struct attn_key_span){problem->key_starts[part], part < problem->sequences
                                                                 ? problem->key_starts[part + 1]
                                                                 : problem->keys};
}

int64_t attn_backward_chunks(const struct attn_backward_plan *plan,
                             const struct attn_problem *problem, int64_t part)
{
    if (part == problem->sequences)
        return 1;
    struct attn_key_span rows = attn_backward_part_rows(problem, part);
    int64_t chunks = round_up(rows.end - rows.begin, plan->keys_a_chunk);
    return chunks > ATTN_MAX_CHUNKS ? ATTN_MAX_CHUNKS : chunks > 0 ? chunks : 1;
}

struct attn_key_span attn_backward_chunk(const struct attn_sequence *sequence, int64_t chunk,
                                         int64_t chunks)
{
    int64_t blocks = round_up(sequence->keys, ATTN_KEY_BLOCK);
    struct attn_key_span span = {
        .begin = blocks * chunk / chunks * ATTN_KEY_BLOCK,
        .end = blocks * (chunk + 1) / chunks * ATTN_KEY_BLOCK,
    };
    if (span.end > sequence->keys)
        span.end = sequence->keys;
    return span;
}

/* Enough chunks for ITEMS items, of equal size where sequences have different lengths. */
static void cut_keys(struct attn_backward_plan *plan, const struct attn_problem *problem)
{
    int64_t keys = problem->keys, items;
    bool fits = attn_checked_multiply(keys, problem->key_heads, &items) &&
                (problem->key_starts || attn_checked_multiply(items, problem->batch, &items));
    plan->keys_a_chunk = fits ? round_up(items, ITEMS) : keys;
    if (plan->keys_a_chunk < LEAST_CHUNK)
        plan->keys_a_chunk = LEAST_CHUNK;
    plan->chunks = 1;
    for (int64_t part = 0; part < plan->parts; part++) {
        struct attn_key_span rows = attn_backward_part_rows(problem, part);
        int64_t chunks = attn_backward_chunks(plan, problem, part);
        int64_t blocks = round_up(round_up(rows.end - rows.begin, ATTN_KEY_BLOCK), chunks);
        plan->chunks = chunks > plan->chunks ? chunks : plan->chunks;
        if (blocks * ATTN_KEY_BLOCK > plan->chunk_rows)
            plan->chunk_rows = blocks * ATTN_KEY_BLOCK;
        if (!problem->key_starts)
            break; /* all alike */
    }
}

static void make_lines(struct attn_backward_plan *plan, const struct attn_problem *problem,
                       const struct attn_backward_problem *backward)
{
    plan->line_chunks = plan->chunks;
    plan->line_parts = plan->parts;
    plan->line_heads = problem->key_heads;
    if (!backward->wants_bias)
        return;
    const int64_t *bias = backward->d_bias.shape;
    if (problem->query_starts ? bias[2] == 1 && bias[3] == 1 : bias[0] == 1)
        plan->line_parts = 1;
    if (bias[1] == 1)
        plan->line_heads = 1;
    if (bias[3] == 1)
        plan->line_chunks = 1;
}

int64_t attn_backward_lines(const struct attn_backward_plan *plan)
{
    return plan->line_chunks * plan->line_parts * plan->line_heads;
}

void attn_backward_shared_take(struct attn_backward_shared *shared,
                               const struct attn_backward_plan *plan,
                               const struct attn_problem *problem,
                               const struct attn_backward_problem *backward,
                               struct attn_scratch *scratch)
{
    shared->documents = attn_scratch_take(scratch, attn_document_blocks_count(problem), 1,
                                          (int64_t)sizeof *shared->documents);
    int64_t rows = 0, waiting = 0;
    if (!attn_checked_multiply(problem->batch, problem->heads, &rows) ||
        !attn_checked_multiply(rows, problem->queries, &rows) ||
        !attn_checked_multiply(rows, plan->chunks, &waiting))
        scratch->overflow = true;
    if (plan->chunks == 1 || !backward->wants_q)
        waiting = 0;
    shared->d_q = attn_scratch_floats(scratch, waiting, problem->d_qk);
    shared->delta = attn_scratch_floats(scratch, backward->wants_sinks ? rows : 0, 1);
}

bool attn_backward_plan_make(struct attn_backward_plan *plan, const struct attn_context *context,
                             const struct attn_problem *problem,
                             const struct attn_backward_problem *backward)
{
    *plan = (struct attn_backward_plan){
        .lanes = 2 * context->kernels->vector_lanes,
        .dots = problem->precision == ATTN_PRECISION_BF16 && problem->v.type == ATTN_BF16 &&
                backward->d_o.type == ATTN_BF16 && problem->d_v % 2 == 0,
        .group = problem->heads / problem->key_heads,
        .parts = problem->sequences + (problem->query_starts != NULL),
        .key_width = padded(problem->d_qk),
        .value_width = padded(problem->d_v),
    };
    /* A panel: queries and d_o, both also as rows, and dQ. */
    struct attn_scratch panel = {NULL, 0, false};
    for (int n = 0; n < 3; n++)
        attn_scratch_floats(&panel, plan->key_width, plan->lanes);
    for (int n = 0; n < 2; n++)
        attn_scratch_floats(&panel, plan->value_width, plan->lanes);
    plan->panels_a_pass = panel.used > 0 ? PASS_BYTES / panel.used : ATTN_PASS_PANELS;
    if (plan->panels_a_pass > ATTN_PASS_PANELS)
        plan->panels_a_pass = ATTN_PASS_PANELS;
    if (plan->panels_a_pass < 1)
        plan->panels_a_pass = 1;
    cut_keys(plan, problem);
    make_lines(plan, problem, backward);

    struct attn_backward_shared counted;
    struct attn_scratch shared = {NULL, 0, panel.overflow};
    attn_backward_shared_take(&counted, plan, problem, backward, &shared);
    plan->shared_bytes = shared.used;
    struct attn_scratch scratch = {NULL, 0, shared.overflow};
    attn_backward_scratch_take(plan, problem, &scratch);
    plan->bytes_a_thread = scratch.used;
    return !scratch.overflow;
}

bool attn_backward_in_place(const struct attn_kernels *kernels, const attn_tensor *tensor)
{
    int64_t dim = tensor->shape[3];
    return tensor->type == ATTN_F32 && attn_elements_adjoin(tensor) && tensor->stride[2] == dim &&
           dim % kernels->vector_lanes == 0;
}

static void take_panel(struct attn_gradient_panel *panel, const struct attn_backward_plan *plan,
                       const struct attn_problem *problem, struct attn_scratch *scratch)
{
    panel->queries = attn_scratch_floats(scratch, problem->d_qk, plan->lanes);
    panel->d_o = attn_scratch_floats(scratch, problem->d_v, plan->lanes);
    panel->d_q = attn_scratch_floats(scratch, problem->d_qk, plan->lanes);
    panel->m = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    panel->inverse_l = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    panel->delta = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    panel->query_rows.copy = attn_scratch_floats(scratch, plan->key_width, plan->lanes);
    panel->d_o_rows.copy = attn_scratch_floats(scratch, plan->value_width, plan->lanes);
}

/* The parts that products of bf16 pairs need, or nothing. */
static void take_pairs(struct attn_backward_scratch *parts, const struct attn_backward_plan *plan,
                       const struct attn_problem *problem, struct attn_scratch *scratch)
{
    const int64_t keys = plan->dots ? ATTN_KEY_BLOCK : 0;
    const int64_t half = (int64_t)sizeof(uint16_t), pair = (int64_t)sizeof(uint32_t);
    const int64_t widest =
        plan->key_width > plan->value_width ? plan->key_width : plan->value_width;
    parts->packed_keys = attn_scratch_take(scratch, keys / 2, problem->d_qk, pair);
    parts->p_rows = attn_scratch_take(scratch, keys, plan->lanes, half);
    parts->ds_rows = attn_scratch_take(scratch, keys, plan->lanes, half);
    parts->ds_weights = attn_scratch_take(scratch, keys / 2, plan->lanes, pair);
    parts->halves = attn_scratch_take(scratch, plan->dots ? plan->lanes : 0, widest, half);
    parts->d_o = attn_scratch_floats(scratch, plan->dots ? problem->d_v : 0, plan->lanes);
}

void attn_backward_scratch_take(const struct attn_backward_plan *plan,
                                const struct attn_problem *problem, struct attn_scratch *scratch)
{
    struct attn_backward_scratch counted;
    struct attn_backward_scratch *parts = attn_scratch_take(scratch, 1, 1, (int64_t)sizeof *parts);
    if (!parts)
        parts = &counted;
    for (int64_t p = 0; p < plan->panels_a_pass; p++)
        take_panel(&parts->panels[p], plan, problem, scratch);
    attn_tile_scratch_take(&parts->tile, problem, scratch);
    if (problem->soft_cap > 0)
        parts->tile.edit.capped = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, plan->lanes);
    if (problem->change_scores)
        parts->tile.edit.given = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, plan->lanes);
    parts->gradients = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, plan->lanes);
    parts->factors =
        attn_scratch_floats(scratch, problem->has_dropout ? ATTN_KEY_BLOCK : 0, plan->lanes);
    parts->unused_maximum = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    parts->row = attn_scratch_floats(
        scratch, plan->key_width > plan->value_width ? plan->key_width : plan->value_width,
        plan->lanes);
    parts->o = attn_scratch_floats(scratch, problem->d_v, plan->lanes);

    /* Copies of an odd width are made even where they are bf16. */
    const bool copies = attn_rows_need_scratch(problem, &problem->k);
    parts->score_keys = attn_scratch_floats(scratch, copies ? ATTN_KEY_BLOCK : 0, problem->d_qk);
    parts->keys = attn_scratch_floats(
        scratch, problem->precision == ATTN_PRECISION_BF16 && !plan->dots ? ATTN_KEY_BLOCK : 0,
        problem->d_qk);
    parts->clean_keys = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, problem->d_qk);
    parts->values = attn_scratch_floats(
        scratch, attn_rows_need_scratch(problem, &problem->v) ? ATTN_KEY_BLOCK : 0, problem->d_v);
    parts->d_k = attn_scratch_floats(scratch, plan->chunk_rows, plan->key_width);
    parts->d_v = attn_scratch_floats(scratch, plan->chunk_rows, plan->value_width);
    parts->finite = attn_scratch_take(scratch, plan->chunk_rows / ATTN_KEY_BLOCK, 1, sizeof(bool));
    parts->excluded =
        attn_scratch_take(scratch, ATTN_KEY_BLOCK, 1, (int64_t)sizeof *parts->excluded);
    take_pairs(parts, plan, problem, scratch);
}
