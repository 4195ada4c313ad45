/* attn_forward: panels of queries go through the keys, block by block.
 *
 * Blocks start at multiples of ATTN_KEY_BLOCK of the sequence whatever the row or the item, and
 * tiles at multiples of ATTN_KEY_STEP, which keeps a row's bits free of both. */
#include "attn.h"

#include <math.h>
#include <string.h>

#include "attention/double.h"
#include "attention/dropout.h"
#include "attention/forward.h"
#include "kernel/dot_kernels.h"

enum { ALL_LANES = -1 };

/* What the panels of an item have in common. */
struct item {
    const struct attn_forward_run *run;
    struct attn_sequence sequence;
    int64_t key_head;
    struct attn_forward_scratch *scratch; /* of the thread */
};

/* The state before the first key: nothing, or the sink, whose weight is exp(sink − m) = 1. */
static void begin_panel(const struct attn_forward_run *run, struct attn_panel *panel)
{
    const float *sinks = run->problem->sinks;
    float m = sinks ? sinks[panel->head] : -INFINITY;
    float l = m == -INFINITY ? 0.0f : expf(m - m);
    for (int n = 0; n < panel->lanes; n++) {
        panel->m[n] = m;
        panel->l[n] = l;
        panel->l_rest[n] = 0.0f;
    }
    memset(panel->output, 0, (size_t)(run->problem->d_v * panel->lanes) * sizeof *panel->output);
}

/* What is inspected on the way of all lanes through the keys; NULL for nothing. */
static const struct attn_inspected *inspected_of(const struct item *item, int careful_lane)
{
    return careful_lane == ALL_LANES ? item->run->plan.inspected : NULL;
}

/* Rows of V; beside them their block as products of bf16 pairs take it, where there are such. */
struct value_block {
    struct attn_rows rows;
    const uint32_t *packed;
};

static struct value_block values_from(struct value_block values, int64_t first)
{
    values.rows = attn_rows_from(values.rows, first);
    return values;
}

/* A copy of the values in which those that the lane excludes are 0. */
static struct value_block clean_values(const struct item *item, const struct attn_tile *tile,
                                       struct value_block values, int lane)
{
    const struct attn_problem *problem = item->run->problem;
    const struct attn_rows *rows = &values.rows;
    int64_t d_v = problem->d_v, keys = tile->keys;
    float *clean = item->scratch->clean_values;
    uint16_t *clean_halves = (uint16_t *)(void *)clean;
    for (int64_t j = 0; j < keys; j++) {
        bool excluded = item->scratch->tile.scores[j * tile->lanes + lane] == -INFINITY;
        for (int64_t c = 0; c < d_v; c++)
            if (problem->dot_values)
                clean_halves[j * d_v + c] = excluded ? 0 : rows->halves[j * rows->stride + c];
            else
                clean[j * d_v + c] = excluded ? 0.0f : rows->data[j * rows->stride + c];
    }
    if (!problem->dot_values)
        return (struct value_block){.rows = {.data = clean, .stride = d_v}};
    item->run->kernels->dots->pack_values(clean_halves, d_v, tile->key % ATTN_KEY_BLOCK, keys, d_v,
                                          item->scratch->clean_packed);
    return (struct value_block){.packed = item->scratch->clean_packed};
}

/* The tile's scores become weights, which the panel's sums take in. */
static void add_weights(const struct item *item, struct attn_panel *panel,
                        const struct attn_tile *tile, bool adds_entropy)
{
    const struct attn_kernels *kernels = item->run->kernels;
    const struct attn_forward_scratch *scratch = item->scratch;
    int64_t d_v = item->run->problem->d_v;
    if (adds_entropy)
        kernels->inspect->softmax_entropy(
            scratch->tile.scores, panel->lanes, tile->keys, panel->m, scratch->m_new, panel->l,
            panel->l_rest, panel->inspection.t, panel->inspection.t_rest, panel->output, d_v);
    else
        kernels->softmax(scratch->tile.scores, panel->lanes, tile->keys, panel->m, scratch->m_new,
                         panel->l, panel->l_rest, panel->output, d_v);
}

/* The same, and the output takes them in too. */
static void add_values(const struct item *item, struct attn_panel *panel,
                       const struct attn_tile *tile, struct value_block values, bool adds_entropy)
{
    const struct attn_problem *problem = item->run->problem;
    const struct attn_kernels *kernels = item->run->kernels;
    const struct attn_forward_scratch *scratch = item->scratch;
    int64_t d_v = problem->d_v, keys = tile->keys;
    float *s = scratch->tile.scores;
    if (problem->dot_values) {
        int64_t first = tile->key % ATTN_KEY_BLOCK;
        if (adds_entropy)
            kernels->inspect->entropy(s, panel->lanes, keys, panel->m, scratch->m_new, panel->l,
                                      panel->l_rest, panel->inspection.t, panel->inspection.t_rest);
        kernels->dots->softmax(s, panel->lanes, first, keys, panel->m, scratch->m_new, panel->l,
                               panel->l_rest, panel->output, d_v, scratch->weight_pairs);
        kernels->dots->accumulate(scratch->weight_pairs, panel->lanes, first, keys, values.packed,
                                  panel->output, d_v);
        return;
    }
    add_weights(item, panel, tile, adds_entropy);
    if (item->run->inspects_only)
        return;
    if (problem->has_dropout) {
        struct attn_dropout_place place = attn_dropout_place_of(problem, tile);
        kernels->dropout(&place, panel->lanes, keys, scratch->factors);
        kernels->multiply(s, scratch->factors, keys * panel->lanes);
    }
    kernels->accumulate(s, panel->lanes, keys, values.rows.data, values.rows.stride, panel->output,
                        d_v);
}

/* Takes the keys first..first+count−1, whose rows are `keys` and `values`, into the panel. With
 * `careful_lane`, only that lane of the result counts, and no value that it excludes is read. */
static void take_keys(struct item *item, struct attn_panel *panel, struct attn_key_span span,
                      struct attn_rows keys, struct value_block values, int careful_lane)
{
    const struct attn_kernels *kernels = item->run->kernels;
    const struct attn_problem *problem = item->run->problem;
    struct attn_forward_scratch *scratch = item->scratch;
    int64_t count = span.end - span.begin;
    const struct attn_tile tile = {.sequence = &item->sequence,
                                   .head = panel->head,
                                   .query = panel->query,
                                   .key = span.begin,
                                   .rows = panel->rows,
                                   .keys = count,
                                   .lanes = panel->lanes};
    size_t lanes_size = (size_t)panel->lanes * sizeof(float);
    memcpy(scratch->m_new, panel->m, lanes_size);
    if (!attn_tile_scores(kernels, problem, &tile, panel->queries, keys, &scratch->tile,
                          scratch->m_new))
        return;
    const struct attn_inspected *inspected = inspected_of(item, careful_lane);
    if (inspected && inspected->top > 0)
        kernels->inspect->select(scratch->tile.scores, tile.lanes, count, span.begin,
                                 &panel->inspection.top);
    bool adds_entropy = inspected && inspected->wants_entropy;
    if (item->run->inspects_only && !adds_entropy)
        return;
    if (careful_lane != ALL_LANES)
        values = clean_values(item, &tile, values, careful_lane);
    add_values(item, panel, &tile, values, adds_entropy);
    memcpy(panel->m, scratch->m_new, lanes_size);
}

/* What the panels keep of a block, together; and how many keep some of it. */
struct block_use {
    struct attn_key_span keys;
    int64_t panels;
};

static struct block_use use_of_block(const struct attn_panel *panels, int64_t panel_count,
                                     int64_t block)
{
    struct block_use use = {{0, 0}, 0};
    for (int64_t p = 0; p < panel_count; p++) {
        struct attn_key_span keys =
            attn_keys_within(&panels[p].keys, block, block + ATTN_KEY_BLOCK);
        use.keys = attn_span_join(use.keys, keys);
        use.panels += !attn_span_is_empty(keys);
    }
    return use;
}

/* One block of keys into all panels that keep some of it. Meanwhile the next block comes nearer, a
 * part with each panel, so that none waits for it. */
static void take_block(struct item *item, struct attn_panel *panels, int64_t panel_count,
                       int64_t block, int careful_lane)
{
    const struct attn_problem *problem = item->run->problem;
    const struct attn_kernels *kernels = item->run->kernels;
    struct attn_key_span all = use_of_block(panels, panel_count, block).keys;
    if (attn_span_is_empty(all))
        return;
    struct block_use next = use_of_block(panels, panel_count, block + ATTN_KEY_BLOCK);
    /* For a few of the panels it is not worth the instructions. */
    int64_t next_keys = next.panels * 2 < panel_count ? 0 : next.keys.end - next.keys.begin;
    struct attn_rows keys = attn_key_rows(kernels, problem, &item->sequence, item->key_head,
                                          all.begin, all.end - all.begin, item->scratch->keys);
    struct value_block values = {.rows = {.data = NULL}};
    if (!item->run->inspects_only)
        values.rows = attn_value_rows(kernels, problem, &item->sequence, item->key_head, all.begin,
                                      all.end - all.begin, item->scratch->values);
    if (problem->dot_values) {
        kernels->dots->pack_values(values.rows.halves, values.rows.stride, all.begin - block,
                                   all.end - all.begin, problem->d_v, item->scratch->packed_values);
        values.packed = item->scratch->packed_values;
    }
    for (int64_t p = 0; p < panel_count; p++) {
        int64_t ahead = next_keys * p / panel_count, ahead_end = next_keys * (p + 1) / panel_count;
        attn_rows_prefetch(problem, &item->sequence, item->key_head, next.keys.begin + ahead,
                           ahead_end - ahead);
        struct attn_key_span span =
            attn_keys_within(&panels[p].keys, block, block + ATTN_KEY_BLOCK);
        if (attn_span_is_empty(span))
            continue;
        int64_t skip = span.begin - all.begin;
        take_keys(item, &panels[p], span, attn_rows_from(keys, skip), values_from(values, skip),
                  careful_lane);
    }
}

/* All keys of `panels`; the panels share the rows of a block. */
static void take_all_keys(struct item *item, struct attn_panel *panels, int64_t panel_count,
                          int careful_lane)
{
    struct attn_key_span prefix = {0, 0}, rest = {0, 0};
    for (int64_t p = 0; p < panel_count; p++) {
        prefix = attn_span_join(prefix, panels[p].keys.prefix);
        rest = attn_span_join(rest, panels[p].keys.rest);
    }
    int64_t block = 0;
    for (; block < prefix.end; block += ATTN_KEY_BLOCK)
        take_block(item, panels, panel_count, block, careful_lane);
    if (block < rest.begin)
        block = rest.begin - rest.begin % ATTN_KEY_BLOCK;
    for (; block < rest.end; block += ATTN_KEY_BLOCK)
        take_block(item, panels, panel_count, block, careful_lane);
}

/* A weight of 0 times a value of NaN or Inf is NaN, so a lane's output may be broken by a value
 * that it excludes. Each such lane is done again, with those values left out. The result has the
 * bits that finite values would have given: adding 0·0 and adding 0·v change nothing alike. */
static void mend_lanes(struct item *item, struct attn_panel *panel, uint32_t broken)
{
    const struct attn_forward_run *run = item->run;
    int64_t d_v = run->problem->d_v;
    struct attn_panel again = *panel;
    again.output = item->scratch->careful.output;
    again.m = item->scratch->careful.m;
    again.l = item->scratch->careful.l;
    again.l_rest = item->scratch->careful.l_rest;
    for (int lane = 0; lane < panel->lanes; lane++) {
        if (!(broken >> lane & 1))
            continue;
        begin_panel(run, &again);
        take_all_keys(item, &again, 1, lane);
        run->kernels->normalise(again.output, panel->lanes, d_v, again.l, panel->rows);
        for (int64_t c = 0; c < d_v; c++)
            panel->output[c * panel->lanes + lane] = again.output[c * panel->lanes + lane];
    }
}

/* Writes what was inspected of a panel, with the statistics that the forward pass leaves, or with
 * the given ones. */
static void write_inspection(const struct item *item, const struct attn_panel *panel)
{
    const struct attn_forward_run *run = item->run;
    const float *m = panel->m, *l = panel->l;
    if (run->inspects_only) {
        const int64_t row = item->sequence.query_begin + panel->query;
        float *given_m = item->scratch->careful.m, *given_l = item->scratch->careful.l;
        for (int64_t n = 0; n < panel->lanes; n++) {
            const bool used = n < panel->rows;
            const attn_tensor *stats = &run->problem->stats;
            const int64_t b = item->sequence.batch;
            given_m[n] = used ? *attn_element(stats, b, panel->head, row + n, 0) : 0.0f;
            given_l[n] = used ? *attn_element(stats, b, panel->head, row + n, 1) : 0.0f;
        }
        m = given_m;
        l = given_l;
    }
    const struct attn_inspected_rows rows = {.sequence = &item->sequence,
                                             .head = panel->head,
                                             .query = panel->query,
                                             .rows = panel->rows,
                                             .lanes = panel->lanes,
                                             .l = panel->l,
                                             .l_rest = panel->l_rest,
                                             .stat_m = m,
                                             .stat_l = l};
    attn_panel_inspection_write(run->kernels, &panel->inspection, run->plan.inspected, &rows,
                                item->scratch->tile.scores);
}

static void finish_panel(struct item *item, struct attn_panel *panel)
{
    const struct attn_forward_run *run = item->run;
    const struct attn_problem *problem = run->problem;
    if (run->plan.inspected)
        write_inspection(item, panel);
    if (run->inspects_only)
        return;
    uint32_t broken =
        run->kernels->normalise(panel->output, panel->lanes, problem->d_v, panel->l, panel->rows);
    if (broken)
        mend_lanes(item, panel, broken);
    if (problem->d_v > 0)
        attn_unpack_rows(run->kernels, &problem->o, item->sequence.batch, panel->head,
                         item->sequence.query_begin + panel->query, panel->rows, panel->lanes,
                         item->scratch->row, panel->output);
    if (!problem->stats.data)
        return;
    int64_t row = item->sequence.query_begin + panel->query;
    for (int64_t n = 0; n < panel->rows; n++) {
        *attn_element(&problem->stats, item->sequence.batch, panel->head, row + n, 0) = panel->m[n];
        *attn_element(&problem->stats, item->sequence.batch, panel->head, row + n, 1) = panel->l[n];
    }
}

static void begin_item_panel(struct item *item, struct attn_panel *panel, int64_t index)
{
    const struct attn_forward_run *run = item->run;
    const struct attn_problem *problem = run->problem;
    int vector_lanes = run->kernels->vector_lanes;
    panel->head = item->key_head * run->plan.group + index % run->plan.group;
    panel->query = index / run->plan.group * run->plan.lanes;
    int64_t left = item->sequence.queries - panel->query;
    panel->rows = left < run->plan.lanes ? left : run->plan.lanes;
    panel->lanes = panel->rows <= vector_lanes ? vector_lanes : run->plan.lanes;
    panel->keys =
        attn_keys_of_rows(problem, &item->sequence, panel->head, panel->query, panel->rows);
    attn_pack_queries(run->kernels, problem, &item->sequence, panel->head, panel->query,
                      panel->rows, panel->lanes, item->scratch->row, panel->queries);
    begin_panel(run, panel);
    if (run->plan.inspected)
        attn_panel_inspection_begin(&panel->inspection, run->plan.inspected, panel->rows,
                                    panel->lanes);
}

static void forward_item(void *state, int64_t index, int thread)
{
    const struct attn_forward_run *run = state;
    /* From the last queries to the first: with a causal mask those have the most keys, and what is
     * left at the end is then small. */
    struct attn_forward_item place =
        attn_forward_item_at(&run->plan, run->problem, run->plan.items - 1 - index);
    char *memory = run->workspace + thread * run->plan.bytes_a_thread;
    struct item item = {.run = run,
                        .sequence = place.sequence,
                        .key_head = place.key_head,
                        .scratch = (struct attn_forward_scratch *)(void *)memory};

    struct attn_panel *panels = item.scratch->panels;
    for (int64_t p = 0; p < place.panels; p++)
        begin_item_panel(&item, &panels[p], place.first + p);
    take_all_keys(&item, panels, place.panels, ALL_LANES);
    for (int64_t p = 0; p < place.panels; p++)
        finish_panel(&item, &panels[p]);
}

bool attn_forward_run_plan(struct attn_forward_run *run, const struct attn_context *context,
                           struct attn_problem *problem, const struct attn_inspected *inspected)
{
    *run = (struct attn_forward_run){.problem = problem, .kernels = context->kernels};
    return attn_forward_plan_make(&run->plan, context, problem, inspected);
}

void attn_forward_run_execute(struct attn_forward_run *run, const struct attn_context *context,
                              void *shared, void *threads)
{
    attn_forward_plan_share(&run->plan, run->problem, shared);
    run->workspace = threads;
    for (int thread = 0; thread < context->parallel.threads; thread++) {
        struct attn_scratch scratch = {run->workspace + thread * run->plan.bytes_a_thread, 0,
                                       false};
        attn_forward_scratch_take(&run->plan, run->problem, &scratch);
    }
    attn_context_run(context, run->plan.items, forward_item, run);
}

static attn_status forward(attn_context *context, const attn_params *params, const attn_tensor *q,
                           const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                           const attn_tensor *stats)
{
    struct attn_problem problem;
    attn_status status = attn_problem_resolve_call(&problem, context, params, q, k, v, o, stats);
    if (status)
        return status;
    if (problem.batch == 0 || problem.heads == 0 || problem.queries == 0 ||
        (problem.d_v == 0 && !stats))
        return ATTN_SUCCESS;
    if (problem.q.type == ATTN_F64)
        return attn_double_forward(context, &problem);

    struct attn_forward_run run;
    if (!attn_forward_run_plan(&run, context, &problem, NULL)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    char *memory = attn_context_workspace(context, run.plan.shared_bytes, run.plan.bytes_a_thread);
    if (!memory)
        return ATTN_ERROR_MEMORY;
    attn_forward_run_execute(&run, context, memory, memory + run.plan.shared_bytes);
    return ATTN_SUCCESS;
}

attn_status attn_forward(attn_context *context, const attn_params *params, const attn_tensor *q,
                         const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                         const attn_tensor *stats)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = forward(context, params, q, k, v, o, stats);
    attn_call_end(modes);
    return status;
}
