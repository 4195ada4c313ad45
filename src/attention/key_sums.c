#include "attention/key_sums.h"

#include <math.h>
#include <string.h>

#include "attention/panel.h"
#include "base/checked.h"
#include "kernel/inspect_kernels.h"

enum {
    /* A panel is packed once a chunk: of fewer keys that would show, of more there would be too few
     * items to share. */
    CHUNK_KEYS = 8 * ATTN_KEY_BLOCK,
    /* Panels that go through a block together: its rows are converted once for them, and so many
     * weights are added in f32 before a sum goes on in double. */
    GROUP_PANELS = 16
};

int64_t attn_key_sums_chunk(void)
{
    return CHUNK_KEYS;
}

struct panel {
    int64_t query, rows;
    struct attn_key_spans keys;
    float *queries;       /* [d_qk][lanes] */
    float *m, *inverse_l; /* [lanes] */
};

/* One thread's memory. */
struct scratch {
    struct panel panels[GROUP_PANELS];
    struct attn_tile_scratch tile;
    float *row;            /* [d_qk][lanes] */
    float *keys;           /* [ATTN_KEY_BLOCK][d_qk] */
    float *unused_maximum; /* [lanes] */
    float *sums;           /* [ATTN_KEY_BLOCK][lanes] */
    double *totals;        /* [CHUNK_KEYS] */
};

static void take_scratch(struct scratch *parts, const struct attn_kernels *kernels,
                         const struct attn_problem *problem, struct attn_scratch *scratch)
{
    const int lanes = 2 * kernels->vector_lanes;
    for (int p = 0; p < GROUP_PANELS; p++) {
        parts->panels[p].queries = attn_scratch_floats(scratch, problem->d_qk, lanes);
        parts->panels[p].m = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
        parts->panels[p].inverse_l = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    }
    attn_tile_scratch_take(&parts->tile, problem, scratch);
    parts->row = attn_scratch_floats(scratch, problem->d_qk, lanes);
    parts->keys = attn_scratch_floats(
        scratch, attn_rows_need_scratch(problem, &problem->k) ? ATTN_KEY_BLOCK : 0, problem->d_qk);
    parts->unused_maximum = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    parts->sums = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, ATTN_MAX_LANES);
    parts->totals = attn_scratch_take(scratch, CHUNK_KEYS, 1, (int64_t)sizeof *parts->totals);
}

static int64_t chunks_of(int64_t keys)
{
    return keys / CHUNK_KEYS + (keys % CHUNK_KEYS > 0);
}

bool attn_key_sums_plan(struct attn_key_sums *sums, const struct attn_context *context,
                        const struct attn_problem *problem, const struct attn_inspected *inspected)
{
    *sums = (struct attn_key_sums){
        .problem = problem, .inspected = inspected, .kernels = context->kernels};
    struct attn_scratch shared = {NULL, 0, false}, thread = {NULL, 0, false};
    int64_t chunks = 0;
    if (problem->query_starts) {
        attn_scratch_take(&shared, problem->sequences + 1, 1, (int64_t)sizeof *sums->part_chunks);
        for (int64_t part = 0; part < problem->sequences; part++)
            chunks += chunks_of(attn_sequence_at(problem, part).keys);
    } else {
        sums->chunks = chunks_of(problem->keys);
        if (!attn_checked_multiply(sums->chunks, problem->sequences, &chunks))
            return false;
    }
    if (!attn_checked_multiply(chunks, problem->heads, &sums->items))
        return false;
    struct scratch counted;
    take_scratch(&counted, context->kernels, problem, &thread);
    sums->shared_bytes = shared.used;
    sums->bytes_a_thread = thread.used;
    return !shared.overflow && !thread.overflow;
}

/* A head and keys begin..end−1 of a sequence, and the queries that count. */
struct item {
    const struct attn_key_sums *run;
    struct scratch *scratch;
    struct attn_sequence sequence;
    int64_t head;
    struct attn_key_span keys;
    int64_t query_begin, query_end;
    int lanes;
};

/* m and 1/l of the panel's rows; lanes without a row or without a key add nothing. */
static void read_statistics(const struct item *item, const struct panel *panel)
{
    const attn_tensor *stats = &item->run->problem->stats;
    const int64_t row = item->sequence.query_begin + panel->query, b = item->sequence.batch;
    for (int64_t n = 0; n < item->lanes; n++) {
        const bool used = n < panel->rows;
        float l = used ? *attn_element(stats, b, item->head, row + n, 1) : 0.0f;
        panel->m[n] = used ? *attn_element(stats, b, item->head, row + n, 0) : 0.0f;
        panel->inverse_l[n] = l == 0.0f ? 0.0f : 1.0f / l;
    }
}

/* The next panels that keep some of the item's keys, from query `*query` on, which it moves behind
 * them; returns how many. */
static int begin_group(const struct item *item, int64_t *query)
{
    const struct attn_problem *problem = item->run->problem;
    int count = 0;
    for (; *query < item->query_end && count < GROUP_PANELS; *query += item->lanes) {
        struct panel *panel = &item->scratch->panels[count];
        int64_t left = item->query_end - *query;
        panel->query = *query;
        panel->rows = left < item->lanes ? left : item->lanes;
        panel->keys =
            attn_keys_of_rows(problem, &item->sequence, item->head, panel->query, panel->rows);
        if (attn_span_is_empty(attn_keys_within(&panel->keys, item->keys.begin, item->keys.end)))
            continue;
        attn_pack_queries(item->run->kernels, problem, &item->sequence, item->head, panel->query,
                          panel->rows, item->lanes, item->scratch->row, panel->queries);
        read_statistics(item, panel);
        count++;
    }
    return count;
}

/* A block of keys, which ends with the item's, and the panels of a group. */
static void add_block(const struct item *item, int panel_count, struct attn_key_span block)
{
    const struct attn_problem *problem = item->run->problem;
    const struct attn_kernels *kernels = item->run->kernels;
    struct scratch *scratch = item->scratch;
    struct attn_key_span all = {0, 0};
    for (int p = 0; p < panel_count; p++)
        all =
            attn_span_join(all, attn_keys_within(&scratch->panels[p].keys, block.begin, block.end));
    if (attn_span_is_empty(all))
        return;
    const int64_t count = all.end - all.begin;
    struct attn_rows rows =
        attn_key_rows(kernels, problem, &item->sequence, attn_key_head(problem, item->head),
                      all.begin, count, scratch->keys);
    memset(scratch->sums, 0, (size_t)(count * item->lanes) * sizeof *scratch->sums);
    for (int p = 0; p < panel_count; p++) {
        const struct panel *panel = &scratch->panels[p];
        struct attn_key_span span = attn_keys_within(&panel->keys, block.begin, block.end);
        if (attn_span_is_empty(span))
            continue;
        const int64_t skip = span.begin - all.begin;
        const struct attn_tile tile = {.sequence = &item->sequence,
                                       .head = item->head,
                                       .query = panel->query,
                                       .key = span.begin,
                                       .rows = panel->rows,
                                       .keys = span.end - span.begin,
                                       .lanes = item->lanes};
        if (attn_tile_scores(kernels, problem, &tile, panel->queries, attn_rows_from(rows, skip),
                             &scratch->tile, scratch->unused_maximum))
            kernels->inspect->add_weights(scratch->tile.scores, item->lanes, tile.keys, panel->m,
                                          panel->inverse_l, scratch->sums + skip * item->lanes);
    }
    kernels->inspect->add_lanes(scratch->sums, item->lanes, count,
                                scratch->totals + (all.begin - item->keys.begin));
}

static void sum_keys(const struct item *item)
{
    double *totals = item->scratch->totals;
    for (int64_t j = 0; j < CHUNK_KEYS; j++)
        totals[j] = 0.0;
    for (int64_t query = item->query_begin; query < item->query_end;) {
        const int panels = begin_group(item, &query);
        for (int64_t key = item->keys.begin; panels > 0 && key < item->keys.end;
             key += ATTN_KEY_BLOCK) {
            int64_t end = key + ATTN_KEY_BLOCK;
            add_block(item, panels,
                      (struct attn_key_span){key, end < item->keys.end ? end : item->keys.end});
        }
    }
    for (int64_t key = item->keys.begin; key < item->keys.end; key++)
        *attn_element(&item->run->inspected->key_sums, item->sequence.batch, item->head,
                      item->sequence.key_begin + key, 0) = (float)totals[key - item->keys.begin];
}

/* Chunks of early keys first: with a causal mask those have the most queries. */
static void sum_item(void *state, int64_t index, int thread)
{
    const struct attn_key_sums *run = state;
    const struct attn_problem *problem = run->problem;
    const struct attn_inspected *inspected = run->inspected;
    struct item item = {.run = run, .head = index % problem->heads};
    int64_t chunk = index / problem->heads, part;
    if (run->part_chunks) {
        part = attn_last_start(run->part_chunks, problem->sequences, chunk);
        chunk -= run->part_chunks[part];
    } else {
        part = chunk % problem->sequences;
        chunk /= problem->sequences;
    }
    item.sequence = attn_sequence_at(problem, part);
    item.keys.begin = chunk * CHUNK_KEYS;
    item.keys.end = item.keys.begin + CHUNK_KEYS;
    if (item.keys.end > item.sequence.keys)
        item.keys.end = item.sequence.keys;
    if (attn_span_is_empty(item.keys))
        return;
    const int64_t begin = inspected->query_begin - item.sequence.query_begin;
    const int64_t end = inspected->query_end - item.sequence.query_begin;
    item.query_begin = begin > 0 ? begin : 0;
    item.query_end = end < item.sequence.queries ? end : item.sequence.queries;
    const int vector_lanes = run->kernels->vector_lanes;
    item.lanes =
        item.query_end - item.query_begin <= vector_lanes ? vector_lanes : 2 * vector_lanes;

    struct scratch scratch;
    struct attn_scratch memory = {run->workspace + thread * run->bytes_a_thread, 0, false};
    take_scratch(&scratch, run->kernels, problem, &memory);
    for (int n = 0; n < item.lanes; n++)
        scratch.unused_maximum[n] = -INFINITY;
    item.scratch = &scratch;
    sum_keys(&item);
}

void attn_key_sums_execute(struct attn_key_sums *sums, const struct attn_context *context,
                           void *shared, void *threads)
{
    const struct attn_problem *problem = sums->problem;
    if (problem->query_starts) {
        sums->part_chunks = shared;
        int64_t before = 0;
        for (int64_t part = 0; part <= problem->sequences; part++) {
            sums->part_chunks[part] = before;
            if (part < problem->sequences)
                before += chunks_of(attn_sequence_at(problem, part).keys);
        }
    }
    sums->workspace = threads;
    attn_inspected_clear_sums(sums->inspected);
    attn_context_run(context, sums->items, sum_item, sums);
}
