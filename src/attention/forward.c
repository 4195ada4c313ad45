/* Whole-tensor attention, planned into panels of queries and blocks of keys.
 *
 * An item of work is a run of panels that share a key head: all query heads of its group, so that a
 * block of K and V is read once for all of them while it is in the cache. Blocks start at multiples
 * of ATTN_KEY_BLOCK whatever the row or the item, and tiles at multiples of ATTN_KEY_STEP, which
 * keeps a row's bits free of both. */
#include "attn.h"

#include <math.h>
#include <string.h>

#include "attention/overlap.h"
#include "attention/panel.h"
#include "base/checked.h"
#include "base/parallel.h"

enum {
    MAX_PANELS = 16, /* of an item: more do not pay, K and V then come from L1 and L2 enough */
    ITEM_BYTES = 512 * 1024, /* what the panels of an item may take: half of a common L2 cache */
    ITEMS_A_THREAD = 4       /* at least, so that threads end together */
};

/* `rows` queries of one head on their way through the keys. */
struct panel {
    int64_t head, query, rows;
    struct attn_key_range keys;
    float *queries;        /* [d_qk][lanes] */
    float *output;         /* [d_v][lanes] */
    float *m, *l, *l_rest; /* [lanes] */
};

/* One thread's memory. */
struct scratch {
    struct panel panels[MAX_PANELS];
    struct panel careful; /* queries are borrowed */
    float *scores;        /* [ATTN_KEY_BLOCK][lanes] */
    float *m_new;         /* [lanes] */
    float *keys;          /* [ATTN_KEY_BLOCK][d_qk] */
    float *values;        /* [ATTN_KEY_BLOCK][d_v] */
    float *clean_values;  /* [ATTN_KEY_BLOCK][d_v] */
};

struct forward {
    const struct attn_problem *problem;
    const struct attn_kernels *kernels;
    int64_t panels_a_head; /* of one query head */
    int64_t panels_an_item;
    int64_t items_a_key_head;
    int64_t items;
    char *workspace;
    int64_t bytes_a_thread;
};

/* Floats rounded up to whole cache lines, in bytes; false on overflow. */
static bool add_floats(int64_t *bytes, int64_t rows, int64_t width)
{
    int64_t count;
    const int64_t line = ATTN_ALIGNMENT / (int64_t)sizeof(float);
    return attn_checked_multiply(rows, width, &count) &&
           attn_checked_add(count, line - 1, &count) &&
           attn_checked_multiply(count / line, ATTN_ALIGNMENT, &count) &&
           attn_checked_add(*bytes, count, bytes);
}

static bool scratch_bytes(const struct forward *run, int64_t *bytes)
{
    const struct attn_problem *problem = run->problem;
    int64_t lanes = run->kernels->lanes;
    *bytes = 0;
    for (int64_t i = 0; i < run->panels_an_item + 1; i++)
        if (!add_floats(bytes, problem->d_qk, lanes) || !add_floats(bytes, problem->d_v, lanes) ||
            !add_floats(bytes, 3, ATTN_MAX_LANES))
            return false;
    return add_floats(bytes, ATTN_KEY_BLOCK + 1, lanes) &&
           add_floats(bytes, ATTN_KEY_BLOCK, problem->d_qk) &&
           add_floats(bytes, ATTN_KEY_BLOCK, problem->d_v) &&
           add_floats(bytes, ATTN_KEY_BLOCK, problem->d_v);
}

static float *take_floats(char **cursor, int64_t rows, int64_t width)
{
    int64_t bytes = 0;
    add_floats(&bytes, rows, width);
    float *floats = (float *)(void *)*cursor;
    *cursor += bytes;
    return floats;
}

static void take_panel(struct panel *panel, const struct forward *run, char **cursor)
{
    int64_t lanes = run->kernels->lanes;
    panel->queries = take_floats(cursor, run->problem->d_qk, lanes);
    panel->output = take_floats(cursor, run->problem->d_v, lanes);
    panel->m = take_floats(cursor, 1, ATTN_MAX_LANES);
    panel->l = take_floats(cursor, 1, ATTN_MAX_LANES);
    panel->l_rest = take_floats(cursor, 1, ATTN_MAX_LANES);
}

static void take_scratch(struct scratch *scratch, const struct forward *run, int thread)
{
    const struct attn_problem *problem = run->problem;
    int64_t lanes = run->kernels->lanes;
    char *cursor = run->workspace + thread * run->bytes_a_thread;
    for (int64_t i = 0; i < run->panels_an_item; i++)
        take_panel(&scratch->panels[i], run, &cursor);
    take_panel(&scratch->careful, run, &cursor);
    scratch->scores = take_floats(&cursor, ATTN_KEY_BLOCK, lanes);
    scratch->m_new = take_floats(&cursor, 1, lanes);
    scratch->keys = take_floats(&cursor, ATTN_KEY_BLOCK, problem->d_qk);
    scratch->values = take_floats(&cursor, ATTN_KEY_BLOCK, problem->d_v);
    scratch->clean_values = take_floats(&cursor, ATTN_KEY_BLOCK, problem->d_v);
}

/* The state before the first key: nothing, or the sink, whose weight is exp(sink − m) = 1. */
static void begin_panel(const struct forward *run, struct panel *panel)
{
    const float *sinks = run->problem->sinks;
    float m = sinks ? sinks[panel->head] : -INFINITY;
    float l = m == -INFINITY ? 0.0f : expf(m - m);
    for (int n = 0; n < run->kernels->lanes; n++) {
        panel->m[n] = m;
        panel->l[n] = l;
        panel->l_rest[n] = 0.0f;
    }
    memset(panel->output, 0,
           (size_t)(run->problem->d_v * run->kernels->lanes) * sizeof *panel->output);
}

/* A copy of the values in which those that the lane excludes are 0. */
static struct attn_rows clean_values(const struct forward *run, const struct scratch *scratch,
                                     struct attn_rows values, int64_t keys, int lane)
{
    int64_t d_v = run->problem->d_v;
    for (int64_t j = 0; j < keys; j++) {
        bool excluded = scratch->scores[j * run->kernels->lanes + lane] == -INFINITY;
        for (int64_t c = 0; c < d_v; c++)
            scratch->clean_values[j * d_v + c] =
                excluded ? 0.0f : values.data[j * values.stride + c];
    }
    return (struct attn_rows){scratch->clean_values, d_v};
}

enum { ALL_LANES = -1 };

/* Takes the keys first..first+count−1, whose rows are `keys` and `values`, into the panel. With
 * `careful_lane`, only that lane of the result counts, and no value that it excludes is read. */
static void take_keys(const struct forward *run, struct scratch *scratch, struct panel *panel,
                      int64_t batch, int64_t first, int64_t count, struct attn_rows keys,
                      struct attn_rows values, int careful_lane)
{
    const struct attn_kernels *kernels = run->kernels;
    struct attn_tile tile = {batch,       panel->head, panel->query,  first,
                             panel->rows, count,       kernels->lanes};
    size_t lanes_size = (size_t)kernels->lanes * sizeof(float);
    memcpy(scratch->m_new, panel->m, lanes_size);
    attn_tile_scores(kernels, run->problem, &tile, panel->queries, keys, scratch->scores,
                     scratch->m_new);
    if (careful_lane != ALL_LANES)
        values = clean_values(run, scratch, values, count, careful_lane);
    kernels->softmax(scratch->scores, count, panel->m, scratch->m_new, panel->l, panel->l_rest,
                     panel->output, run->problem->d_v);
    memcpy(panel->m, scratch->m_new, lanes_size);
    kernels->accumulate(scratch->scores, count, values.data, values.stride, panel->output,
                        run->problem->d_v);
}

/* All keys of `panels`, block by block; the panels share the rows of a block. */
static void take_all_keys(const struct forward *run, struct scratch *scratch, struct panel *panels,
                          int64_t panel_count, int64_t batch, int64_t key_head, int careful_lane)
{
    const struct attn_problem *problem = run->problem;
    struct attn_key_range all = {problem->keys, 0};
    for (int64_t p = 0; p < panel_count; p++) {
        all.begin = panels[p].keys.begin < all.begin ? panels[p].keys.begin : all.begin;
        all.end = panels[p].keys.end > all.end ? panels[p].keys.end : all.end;
    }
    for (int64_t block = all.begin - all.begin % ATTN_KEY_BLOCK; block < all.end;
         block += ATTN_KEY_BLOCK) {
        int64_t block_end = block + ATTN_KEY_BLOCK < all.end ? block + ATTN_KEY_BLOCK : all.end;
        int64_t block_begin = block > all.begin ? block : all.begin;
        struct attn_rows keys = attn_side_by_side(&problem->k, batch, key_head, block_begin,
                                                  block_end - block_begin, scratch->keys);
        struct attn_rows values = attn_side_by_side(&problem->v, batch, key_head, block_begin,
                                                    block_end - block_begin, scratch->values);
        for (int64_t p = 0; p < panel_count; p++) {
            struct panel *panel = &panels[p];
            int64_t begin = panel->keys.begin > block_begin ? panel->keys.begin : block_begin;
            int64_t end = panel->keys.end < block_end ? panel->keys.end : block_end;
            if (begin >= end)
                continue;
            int64_t skip = begin - block_begin;
            take_keys(run, scratch, panel, batch, begin, end - begin,
                      (struct attn_rows){keys.data + skip * keys.stride, keys.stride},
                      (struct attn_rows){values.data + skip * values.stride, values.stride},
                      careful_lane);
        }
    }
}

/* A weight of 0 times a value of NaN or Inf is NaN, so a lane's output may be broken by a value
 * that it excludes. Each such lane is done again, with those values left out. The result has the
 * bits that finite values would have given: adding 0·0 and adding 0·v change nothing alike. */
static void mend_lanes(const struct forward *run, struct scratch *scratch, struct panel *panel,
                       int64_t batch, uint32_t broken)
{
    struct panel again = *panel;
    again.output = scratch->careful.output;
    again.m = scratch->careful.m;
    again.l = scratch->careful.l;
    again.l_rest = scratch->careful.l_rest;
    int64_t key_head = attn_key_head(run->problem, panel->head);
    int lanes = run->kernels->lanes;
    for (int lane = 0; lane < lanes; lane++) {
        if (!(broken >> lane & 1))
            continue;
        begin_panel(run, &again);
        take_all_keys(run, scratch, &again, 1, batch, key_head, lane);
        run->kernels->normalise(again.output, run->problem->d_v, again.l, panel->rows);
        for (int64_t c = 0; c < run->problem->d_v; c++)
            panel->output[c * lanes + lane] = again.output[c * lanes + lane];
    }
}

static void finish_panel(const struct forward *run, struct scratch *scratch, struct panel *panel,
                         int64_t batch)
{
    const struct attn_problem *problem = run->problem;
    uint32_t broken = run->kernels->normalise(panel->output, problem->d_v, panel->l, panel->rows);
    if (broken)
        mend_lanes(run, scratch, panel, batch, broken);
    if (problem->d_v > 0)
        run->kernels->unpack_output(panel->output, problem->d_v,
                                    attn_element(&problem->o, batch, panel->head, panel->query, 0),
                                    problem->o.stride[2], problem->o.stride[3], panel->rows);
    if (problem->stats.data)
        for (int64_t n = 0; n < panel->rows; n++) {
            int64_t i = panel->query + n;
            *attn_element(&problem->stats, batch, panel->head, i, 0) = panel->m[n];
            *attn_element(&problem->stats, batch, panel->head, i, 1) = panel->l[n];
        }
}

static void forward_item(void *user, int64_t item, int thread)
{
    const struct forward *run = user;
    const struct attn_problem *problem = run->problem;
    int64_t lanes = run->kernels->lanes;
    struct scratch scratch;
    take_scratch(&scratch, run, thread);

    /* From the last queries to the first: with a causal mask those have the most keys, and what is
     * left at the end is then small. */
    item = run->items - 1 - item;
    int64_t batch = item / run->items_a_key_head / problem->key_heads;
    int64_t key_head = item / run->items_a_key_head % problem->key_heads;
    int64_t group = problem->heads / problem->key_heads;
    int64_t first = item % run->items_a_key_head * run->panels_an_item;
    int64_t count = run->panels_a_head * group - first;
    if (count > run->panels_an_item)
        count = run->panels_an_item;

    for (int64_t p = 0; p < count; p++) {
        struct panel *panel = &scratch.panels[p];
        panel->head = key_head * group + (first + p) % group;
        panel->query = (first + p) / group * lanes;
        panel->rows =
            problem->queries - panel->query < lanes ? problem->queries - panel->query : lanes;
        panel->keys = attn_keys_of_rows(problem, batch, panel->query, panel->rows);
        panel->keys.begin -= panel->keys.begin % ATTN_KEY_STEP;
        run->kernels->pack_queries(attn_element(&problem->q, batch, panel->head, panel->query, 0),
                                   problem->q.stride[2], problem->q.stride[3], panel->rows,
                                   problem->d_qk, panel->queries);
        begin_panel(run, panel);
    }
    take_all_keys(run, &scratch, scratch.panels, count, batch, key_head, ALL_LANES);
    for (int64_t p = 0; p < count; p++)
        finish_panel(run, &scratch, &scratch.panels[p], batch);
}

static attn_status plan(struct forward *run, struct attn_context *context)
{
    const struct attn_problem *problem = run->problem;
    int64_t lanes = run->kernels->lanes;
    int64_t group = problem->heads / problem->key_heads;
    run->panels_a_head = (problem->queries + lanes - 1) / lanes;
    int64_t panels = run->panels_a_head * group;

    int64_t fitting = MAX_PANELS;
    int64_t panel_bytes = 0;
    if (!add_floats(&panel_bytes, problem->d_qk, lanes) ||
        !add_floats(&panel_bytes, problem->d_v, lanes)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    if (panel_bytes > ITEM_BYTES / MAX_PANELS)
        fitting = panel_bytes > ITEM_BYTES ? 1 : ITEM_BYTES / panel_bytes;
    /* Threads want enough items to share. No row's bits depend on this. */
    int64_t shared =
        panels * problem->batch * problem->key_heads / ((int64_t)context->threads * ITEMS_A_THREAD);
    if (context->threads > 1 && shared < fitting)
        fitting = shared > 0 ? shared : 1;
    run->panels_an_item = panels < fitting ? panels : fitting;
    run->items_a_key_head = (panels + run->panels_an_item - 1) / run->panels_an_item;
    run->items = run->items_a_key_head * problem->batch * problem->key_heads;

    if (!scratch_bytes(run, &run->bytes_a_thread)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    run->workspace = attn_context_workspace(context, run->bytes_a_thread);
    return run->workspace ? ATTN_SUCCESS : ATTN_ERROR_MEMORY;
}

/* v, o and stats, which only forward has, and what may not overlap. */
static attn_status resolve_outputs(struct attn_problem *problem, const attn_tensor *v,
                                   const attn_tensor *o, const attn_tensor *stats,
                                   struct attn_error *error)
{
    attn_status status = attn_check_tensor(v, "v", ATTN_F32, error);
    if (!status)
        status = attn_check_tensor(o, "o", ATTN_F32, error);
    if (!status && stats)
        status = attn_check_tensor(stats, "stats", ATTN_F32, error);
    if (status)
        return status;

    const int64_t v_shape[4] = {problem->batch, problem->key_heads, problem->keys, v->shape[3]};
    const int64_t o_shape[4] = {problem->batch, problem->heads, problem->queries, v->shape[3]};
    const int64_t stats_shape[4] = {problem->batch, problem->heads, problem->queries, 2};
    status = attn_check_shape(v, "v", v_shape, error);
    if (!status)
        status = attn_check_shape(o, "o", o_shape, error);
    if (!status && stats)
        status = attn_check_shape(stats, "stats", stats_shape, error);
    if (status)
        return status;

    problem->d_v = v->shape[3];
    problem->v = attn_without_offsets(v);
    problem->o = attn_without_offsets(o);
    status = attn_check_output(problem, o, "o", true, error);
    if (!status && stats) {
        problem->stats = *stats;
        status = attn_check_output(problem, stats, "stats", true, error);
        RETURN_IF(!status && attn_overlap(stats, o), error, ATTN_ERROR_OVERLAP,
                  "stats and o share memory, expected outputs apart from each other");
    }
    return status;
}

attn_status attn_forward(attn_context *context, const attn_params *params, const attn_tensor *q,
                         const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                         const attn_tensor *stats)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    context->error.message[0] = '\0';

    struct attn_problem problem;
    attn_status status = attn_problem_resolve(&problem, params, q, k, &context->error);
    if (!status)
        status = resolve_outputs(&problem, v, o, stats, &context->error);
    if (status)
        return status;
    if (problem.batch == 0 || problem.heads == 0 || problem.queries == 0 ||
        (problem.d_v == 0 && !stats))
        return ATTN_SUCCESS;

    struct forward run = {.problem = &problem, .kernels = context->kernels};
    status = plan(&run, context);
    if (!status)
        attn_parallel_for(context->threads, run.items, forward_item, &run);
    return status;
}
