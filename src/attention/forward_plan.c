#include "attention/forward_plan.h"

#include "attention/document_blocks.h"
#include "kernel/dot_kernels.h"

enum {
    ITEM_BYTES = 256 * 1024, /* what the panels of an item may take: half of a small L2 cache */
    ITEMS_A_THREAD = 4       /* at least, so that threads end together */
};

static int64_t round_up(int64_t count, int64_t step)
{
    return count / step + (count % step > 0);
}

/* Where sequences are packed, rows behind the last one make a part without keys. */
static int64_t count_parts(const struct attn_problem *problem)
{
    return problem->sequences + (problem->query_starts != NULL);
}

static int64_t part_queries(const struct attn_problem *problem, int64_t part)
{
    return attn_sequence_at(problem, part).queries;
}

static int64_t items_of(const struct attn_forward_plan *plan, int64_t queries)
{
    return round_up(round_up(queries, plan->lanes) * plan->group, plan->panels_an_item);
}

/* The shared part of the workspace: part_items, and what is returned. */
static struct attn_document_range *take_shared(struct attn_forward_plan *plan,
                                               const struct attn_problem *problem,
                                               struct attn_scratch *scratch)
{
    if (problem->query_starts)
        plan->part_items =
            attn_scratch_take(scratch, plan->parts + 1, 1, (int64_t)sizeof *plan->part_items);
    return attn_scratch_take(scratch, attn_document_blocks_count(problem), 1,
                             (int64_t)sizeof(struct attn_document_range));
}

bool attn_forward_plan_make(struct attn_forward_plan *plan, const struct attn_context *context,
                            const struct attn_problem *problem,
                            const struct attn_inspected *inspected)
{
    const int vectors = problem->dot_values ? context->kernels->dots->panel_vectors : 2;
    *plan = (struct attn_forward_plan){
        .inspected = inspected,
        .vector_lanes = context->kernels->vector_lanes,
        .lanes = vectors * context->kernels->vector_lanes,
        .group = problem->heads / problem->key_heads,
        .parts = count_parts(problem),
    };
    struct attn_scratch panel = {NULL, 0, false};
    attn_scratch_floats(&panel, problem->d_qk, plan->lanes);
    attn_scratch_floats(&panel, problem->d_v, plan->lanes);
    int64_t fitting = ATTN_ITEM_PANELS / vectors;
    if (panel.used > ITEM_BYTES / fitting)
        fitting = panel.used > ITEM_BYTES ? 1 : ITEM_BYTES / panel.used;

    /* Rows fill memory, so that no product of their counts leaves 64 bits. */
    int64_t panels = 0, most = 0;
    if (problem->query_starts) {
        for (int64_t part = 0; part < plan->parts; part++) {
            int64_t count = round_up(part_queries(problem, part), plan->lanes);
            panels += count;
            most = count > most ? count : most;
        }
    } else {
        most = round_up(problem->queries, plan->lanes);
        panels = most * problem->batch;
    }
    if (fitting > most * plan->group)
        fitting = most * plan->group;
    /* Threads want enough items to share. */
    int64_t shared =
        panels * problem->heads / ((int64_t)context->parallel.threads * ITEMS_A_THREAD);
    if (context->parallel.threads > 1 && shared < fitting)
        fitting = shared > 0 ? shared : 1;
    plan->panels_an_item = fitting;

    if (problem->query_starts) {
        for (int64_t part = 0; part < plan->parts; part++)
            plan->items += items_of(plan, part_queries(problem, part)) * problem->key_heads;
    } else {
        plan->items_a_part = items_of(plan, problem->queries) * problem->key_heads;
        plan->items = plan->items_a_part * plan->parts;
    }
    struct attn_scratch shared_parts = {NULL, 0, panel.overflow};
    take_shared(plan, problem, &shared_parts);
    plan->shared_bytes = shared_parts.used;
    struct attn_scratch scratch = {NULL, 0, shared_parts.overflow};
    attn_forward_scratch_take(plan, problem, &scratch);
    plan->bytes_a_thread = scratch.used;
    return !scratch.overflow;
}

void attn_forward_plan_share(struct attn_forward_plan *plan, struct attn_problem *problem,
                             void *memory)
{
    struct attn_scratch parts = {memory, 0, false};
    struct attn_document_range *blocks = take_shared(plan, problem, &parts);
    if (problem->key_documents) {
        attn_document_blocks_fill(problem, blocks);
        problem->document_blocks = blocks;
    }
    int64_t before = 0;
    for (int64_t part = 0; problem->query_starts && part <= plan->parts; part++) {
        plan->part_items[part] = before;
        if (part < plan->parts)
            before += items_of(plan, part_queries(problem, part)) * problem->key_heads;
    }
}

struct attn_forward_item attn_forward_item_at(const struct attn_forward_plan *plan,
                                              const struct attn_problem *problem, int64_t item)
{
    int64_t part, within;
    if (plan->part_items) {
        part = attn_last_start(plan->part_items, plan->parts, item);
        within = item - plan->part_items[part];
    } else {
        part = item / plan->items_a_part;
        within = item % plan->items_a_part;
    }
    struct attn_forward_item result = {.sequence = attn_sequence_at(problem, part)};
    int64_t items_a_head = items_of(plan, result.sequence.queries);
    int64_t panels = round_up(result.sequence.queries, plan->lanes) * plan->group;
    result.key_head = within / items_a_head;
    /* Evenly: a last item of few panels would read all of K and V for them. */
    int64_t index = within % items_a_head;
    result.first = index * panels / items_a_head;
    result.panels = (index + 1) * panels / items_a_head - result.first;
    return result;
}

static void take_panel(struct attn_panel *panel, const struct attn_forward_plan *plan,
                       const struct attn_problem *problem, struct attn_scratch *scratch)
{
    panel->queries = attn_scratch_floats(scratch, problem->d_qk, plan->lanes);
    panel->output = attn_scratch_floats(scratch, problem->d_v, plan->lanes);
    panel->m = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    panel->l = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    panel->l_rest = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
}

void attn_forward_scratch_take(const struct attn_forward_plan *plan,
                               const struct attn_problem *problem, struct attn_scratch *scratch)
{
    struct attn_forward_scratch counted;
    struct attn_forward_scratch *parts = attn_scratch_take(scratch, 1, 1, (int64_t)sizeof *parts);
    if (!parts)
        parts = &counted;
    for (int64_t p = 0; p < plan->panels_an_item; p++) {
        take_panel(&parts->panels[p], plan, problem, scratch);
        if (plan->inspected)
            attn_panel_inspection_take(&parts->panels[p].inspection, plan->inspected,
                                       plan->vector_lanes, plan->lanes, scratch);
    }
    take_panel(&parts->careful, plan, problem, scratch);
    attn_tile_scratch_take(&parts->tile, problem, scratch);
    parts->m_new = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    parts->row = attn_scratch_floats(
        scratch, problem->d_qk > problem->d_v ? problem->d_qk : problem->d_v, plan->lanes);
    parts->keys = attn_scratch_floats(
        scratch, attn_rows_need_scratch(problem, &problem->k) ? ATTN_KEY_BLOCK : 0, problem->d_qk);
    parts->values = attn_scratch_floats(
        scratch, attn_rows_need_scratch(problem, &problem->v) ? ATTN_KEY_BLOCK : 0, problem->d_v);
    parts->clean_values = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, problem->d_v);
    parts->factors =
        attn_scratch_floats(scratch, problem->has_dropout ? ATTN_KEY_BLOCK : 0, plan->lanes);
    const int64_t pairs = problem->dot_values ? ATTN_KEY_BLOCK / 2 : 0;
    const int64_t size = (int64_t)sizeof(uint32_t);
    parts->packed_values = attn_scratch_take(scratch, pairs, problem->d_v, size);
    parts->clean_packed = attn_scratch_take(scratch, pairs, problem->d_v, size);
    parts->weight_pairs = attn_scratch_take(scratch, pairs, plan->lanes, size);
}
