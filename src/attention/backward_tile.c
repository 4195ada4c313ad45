/* With S the final scores of a tile, and ∂ for ∂L/∂:
 *     P = exp(S − m)/l            ∂V += Pᵀ·∂O         ∂P = ∂O·Vᵀ
 *     ∂S = P∘(∂P − D)             ∂Q += ∂S·K          ∂K += ∂Sᵀ·Q
 * (T. Dao et al., "FlashAttention" (2022), appendix B.4), all with the query as the lane.
 *
 * 0 · NaN is NaN, so rows that are not finite stay out of the last three products as a whole. What
 * they give to the pairs that keep them is added by itself. */
#include "attention/backward_tile.h"

#include <math.h>
#include <string.h>

#include "attention/backward_bias.h"
#include "attention/dropout.h"
#include "kernel/dot_kernels.h"
#include "kernel/gradient_kernels.h"

static bool key_is_finite(const struct attn_gradient_block *block, int64_t d_qk, int64_t j)
{
    if (block->keys.halves)
        return attn_all_finite_halves(block->keys.halves + j * block->keys.stride, d_qk);
    return attn_all_finite(block->keys.data + j * block->keys.stride, d_qk);
}

/* Whether all keys are finite: found out once for a block of which all keys are there. */
static bool keys_are_finite(const struct attn_gradient_block *block,
                            const struct attn_backward_item *item)
{
    bool *known = item->scratch->finite + (block->first - item->keys.begin) / ATTN_KEY_BLOCK;
    if (*known)
        return true;
    for (int64_t j = 0; j < block->count; j++)
        if (!key_is_finite(block, item->run->problem.d_qk, j))
            return false;
    *known = block->count == ATTN_KEY_BLOCK;
    return true;
}

/* A copy of the keys, with zeros for those that are not finite. */
static void clean_keys(struct attn_gradient_block *block, const struct attn_backward_item *item)
{
    int64_t d_qk = item->run->problem.d_qk;
    const struct attn_rows *keys = &block->keys;
    float *clean = item->scratch->clean_keys;
    uint16_t *clean_halves = (uint16_t *)(void *)clean;
    for (int64_t j = 0; j < block->count; j++) {
        block->broken_keys[j] = !key_is_finite(block, d_qk, j);
        for (int64_t c = 0; c < d_qk; c++)
            if (keys->halves)
                clean_halves[j * d_qk + c] =
                    block->broken_keys[j] ? 0 : keys->halves[j * keys->stride + c];
            else
                clean[j * d_qk + c] =
                    block->broken_keys[j] ? 0.0f : keys->data[j * keys->stride + c];
    }
    if (keys->halves)
        block->keys = (struct attn_rows){.halves = clean_halves, .stride = d_qk};
    else
        block->keys = (struct attn_rows){.data = clean, .stride = d_qk};
}

void attn_gradient_block_read(struct attn_gradient_block *block,
                              const struct attn_backward_item *item, struct attn_key_span span)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_problem *problem = &run->problem;
    struct attn_backward_scratch *scratch = item->scratch;
    block->first = span.begin;
    block->count = span.end - span.begin;
    block->scores = attn_key_rows(run->kernels, problem, &item->sequence, item->key_head,
                                  span.begin, block->count, scratch->score_keys);
    block->values = attn_value_rows(run->kernels, problem, &item->sequence, item->key_head,
                                    span.begin, block->count, scratch->values);
    block->keys = block->scores;
    if (problem->precision == ATTN_PRECISION_BF16 && !run->plan.dots)
        block->keys = attn_key_rows(run->kernels, &run->exact, &item->sequence, item->key_head,
                                    span.begin, block->count, scratch->keys);

    block->broken = !keys_are_finite(block, item);
    if (block->broken)
        clean_keys(block, item);
    if (!run->plan.dots)
        return;
    run->kernels->dots->pack_values(block->keys.halves, block->keys.stride,
                                    block->first % ATTN_KEY_BLOCK, block->count, problem->d_qk,
                                    scratch->packed_keys);
    block->packed_keys = scratch->packed_keys;
}

/* Bit n of excluded[j]: the final score of lane n and key j is −inf, or the lane has no key. */
static void mark_excluded(const struct attn_backward_item *item,
                          const struct attn_gradient_panel *panel, int64_t keys)
{
    const float *s = item->scratch->tile.scores;
    for (int64_t j = 0; j < keys; j++) {
        uint32_t bits = 0;
        for (int n = 0; n < panel->lanes; n++) {
            bool excluded = s[j * panel->lanes + n] == -INFINITY || panel->inverse_l[n] == 0.0f;
            bits |= (uint32_t)excluded << n;
        }
        item->scratch->excluded[j] = bits;
    }
}

static bool is_kept(const struct attn_backward_item *item, int64_t j, int64_t n)
{
    return !(item->scratch->excluded[j] >> n & 1);
}

/* P and ∂S of the tile's scores, P times the factors of dropout. */
static void make_weights(const struct attn_backward_item *item,
                         const struct attn_gradient_panel *panel, const struct attn_tile *tile)
{
    const struct attn_problem *problem = &item->run->problem;
    const struct attn_kernels *kernels = item->run->kernels;
    const struct attn_backward_scratch *scratch = item->scratch;
    if (!problem->has_dropout) {
        kernels->gradients->softmax(scratch->tile.scores, scratch->gradients, panel->lanes,
                                    tile->keys, panel->m, panel->inverse_l, panel->delta);
        return;
    }
    struct attn_dropout_place place = attn_dropout_place_of(problem, tile);
    kernels->dropout(&place, panel->lanes, tile->keys, scratch->factors);
    kernels->gradients->softmax_dropout(scratch->tile.scores, scratch->gradients, scratch->factors,
                                        panel->lanes, tile->keys, panel->m, panel->inverse_l,
                                        panel->delta);
}

static void call_change_gradients(const struct attn_backward_item *item,
                                  const struct attn_tile *tile)
{
    const struct attn_problem *problem = &item->run->problem;
    float *ds = item->scratch->gradients;
    attn_score_tile view = {
        .sequence = tile->sequence->index,
        .head = tile->head,
        .query = tile->query,
        .key = tile->key,
        .queries = tile->rows,
        .keys = tile->keys,
        .scores = item->scratch->tile.edit.given,
        .query_stride = 1,
        .key_stride = tile->lanes,
    };
    problem->change_gradients(problem->callback_user, &view, ds);
    for (int64_t j = 0; j < tile->keys; j++)
        for (int64_t n = 0; n < tile->lanes; n++)
            if (n >= tile->rows || !is_kept(item, j, n))
                ds[j * tile->lanes + n] = 0.0f;
}

/* From ∂L/∂ of the final scores to that of scale·(q·k): the way of attn_edit_scores back. */
static void edit_gradients(const struct attn_backward_item *item, const struct attn_tile *tile)
{
    const struct attn_problem *problem = &item->run->problem;
    float *ds = item->scratch->gradients;
    if (problem->change_scores)
        call_change_gradients(item, tile);
    if (item->run->backward.wants_bias)
        attn_backward_add_bias(item->run, tile, ds);
    if (problem->soft_cap == 0.0f)
        return;
    /* d/dx c·tanh(x/c) = 1 − tanh²(x/c). The score of an excluded pair may be NaN. */
    const float *capped = item->scratch->tile.edit.capped, one_by_cap = 1.0f / problem->soft_cap;
    for (int64_t i = 0; i < tile->keys * tile->lanes; i++) {
        float tanh = capped[i] * one_by_cap, changed = ds[i] * (1.0f - tanh * tanh);
        ds[i] = ds[i] != 0.0f ? changed : 0.0f;
    }
}

/* The last three products, of rows that are finite. */
static void add_products(const struct attn_backward_item *item, struct attn_gradient_panel *panel,
                         const struct attn_gradient_block *block, const struct attn_tile *tile)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_backward_plan *plan = &run->plan;
    const struct attn_kernels *kernels = run->kernels;
    const float *p = item->scratch->tile.scores, *ds = item->scratch->gradients;
    int64_t keys = tile->keys, d_qk = run->problem.d_qk, d_v = run->problem.d_v;
    float *d_v_rows = item->scratch->d_v + (tile->key - item->keys.begin) * plan->value_width;
    float *d_k_rows = item->scratch->d_k + (tile->key - item->keys.begin) * plan->key_width;
    if (run->backward.wants_v)
        kernels->gradients->add_rows(p, panel->lanes, keys, panel->d_o_rows.data,
                                     panel->d_o_rows.stride, panel->rows, d_v_rows,
                                     plan->value_width, d_v);
    if (run->backward.wants_k)
        kernels->gradients->add_rows(ds, panel->lanes, keys, panel->query_rows.data,
                                     panel->query_rows.stride, panel->rows, d_k_rows,
                                     plan->key_width, d_qk);
    struct attn_rows key_rows = attn_rows_from(block->keys, tile->key - block->first);
    if (run->backward.wants_q)
        kernels->accumulate(ds, panel->lanes, keys, key_rows.data, key_rows.stride, panel->d_q,
                            d_qk);
}

/* The same by products of bf16 pairs. */
static void add_dot_products(const struct attn_backward_item *item,
                             struct attn_gradient_panel *panel,
                             const struct attn_gradient_block *block, const struct attn_tile *tile)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_backward_plan *plan = &run->plan;
    const struct attn_dot_gradient_kernels *kernels = run->kernels->dot_gradients;
    struct attn_backward_scratch *scratch = item->scratch;
    int64_t keys = tile->keys, d_qk = run->problem.d_qk, d_v = run->problem.d_v;
    float *d_v_rows = scratch->d_v + (tile->key - item->keys.begin) * plan->value_width;
    float *d_k_rows = scratch->d_k + (tile->key - item->keys.begin) * plan->key_width;
    int64_t first = tile->key % ATTN_KEY_BLOCK;
    kernels->narrow(scratch->tile.scores, scratch->gradients, panel->lanes, first, keys,
                    scratch->p_rows, scratch->ds_rows, scratch->ds_weights);
    if (run->backward.wants_v)
        kernels->add_rows(scratch->p_rows, panel->lanes, keys, panel->d_o_rows.pairs,
                          panel->d_o_rows.stride, panel->rows, d_v_rows, plan->value_width, d_v);
    if (run->backward.wants_k)
        kernels->add_rows(scratch->ds_rows, panel->lanes, keys, panel->query_rows.pairs,
                          panel->query_rows.stride, panel->rows, d_k_rows, plan->key_width, d_qk);
    if (run->backward.wants_q)
        run->kernels->dots->accumulate(scratch->ds_weights, panel->lanes, first, keys,
                                       block->packed_keys, panel->d_q, d_qk);
}

/* What the broken rows of Q or d_o, of `tensor`, give to the keys that they keep: sums[j] +=
 * weights[j][n] · row n. */
static void add_broken_rows(const struct attn_backward_item *item,
                            const struct attn_gradient_panel *panel, const struct attn_tile *tile,
                            const attn_tensor *tensor, uint32_t broken, const float *weights,
                            float *sums, int64_t width)
{
    int64_t row = item->sequence.query_begin + panel->query, dim = tensor->shape[3];
    float *numbers = item->scratch->row;
    for (int64_t n = 0; n < panel->rows; n++) {
        if (!(broken >> n & 1))
            continue;
        attn_read_rows(item->run->kernels, tensor, item->sequence.batch, panel->head, row + n, 1,
                       numbers, dim);
        for (int64_t j = 0; j < tile->keys; j++)
            for (int64_t c = 0; is_kept(item, j, n) && c < dim; c++)
                sums[j * width + c] += weights[j * panel->lanes + n] * numbers[c];
    }
}

/* What the broken keys give to the queries that keep them. */
static void add_broken_keys(const struct attn_backward_item *item,
                            struct attn_gradient_panel *panel,
                            const struct attn_gradient_block *block, const struct attn_tile *tile)
{
    const struct attn_problem *problem = &item->run->problem;
    const float *ds = item->scratch->gradients;
    float *numbers = item->scratch->row;
    for (int64_t j = 0; block->broken && j < tile->keys; j++) {
        if (!block->broken_keys[tile->key - block->first + j])
            continue;
        attn_read_rows(item->run->kernels, &problem->k, item->sequence.batch, item->key_head,
                       item->sequence.key_begin + tile->key + j, 1, numbers, problem->d_qk);
        for (int64_t n = 0; n < panel->rows; n++)
            for (int64_t c = 0; is_kept(item, j, n) && c < problem->d_qk; c++)
                panel->d_q[c * panel->lanes + n] += ds[j * panel->lanes + n] * numbers[c];
    }
}

static void add_broken(const struct attn_backward_item *item, struct attn_gradient_panel *panel,
                       const struct attn_gradient_block *block, const struct attn_tile *tile)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_backward_scratch *scratch = item->scratch;
    int64_t row = tile->key - item->keys.begin;
    add_broken_rows(item, panel, tile, &run->backward.d_o, panel->d_o_rows.broken,
                    scratch->tile.scores, scratch->d_v + row * run->plan.value_width,
                    run->plan.value_width);
    add_broken_rows(item, panel, tile, &run->problem.q, panel->query_rows.broken,
                    scratch->gradients, scratch->d_k + row * run->plan.key_width,
                    run->plan.key_width);
    add_broken_keys(item, panel, block, tile);
}

void attn_gradient_tile(const struct attn_backward_item *item, struct attn_gradient_panel *panel,
                        const struct attn_gradient_block *block, struct attn_key_span span)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_problem *problem = &run->problem;
    struct attn_backward_scratch *scratch = item->scratch;
    const struct attn_tile tile = {.sequence = &item->sequence,
                                   .head = panel->head,
                                   .query = panel->query,
                                   .key = span.begin,
                                   .rows = panel->rows,
                                   .keys = span.end - span.begin,
                                   .lanes = panel->lanes};
    int64_t skip = span.begin - block->first;
    if (!attn_tile_scores(run->kernels, problem, &tile, panel->queries,
                          attn_rows_from(block->scores, skip), &scratch->tile,
                          scratch->unused_maximum))
        return;
    struct attn_rows values = attn_rows_from(block->values, skip);
    if (run->plan.dots)
        run->kernels->dots->scores((const uint32_t *)(const void *)panel->d_o, panel->lanes,
                                   problem->d_v, values.halves, values.stride, tile.keys, 1.0f,
                                   scratch->gradients, scratch->unused_maximum);
    else
        run->kernels->scores(panel->d_o, panel->lanes, problem->d_v, values.data, values.stride,
                             tile.keys, 1.0f, scratch->gradients, scratch->unused_maximum);

    bool broken = block->broken || panel->query_rows.broken || panel->d_o_rows.broken;
    if (broken || problem->change_scores)
        mark_excluded(item, panel, tile.keys);
    make_weights(item, panel, &tile);
    edit_gradients(item, &tile);
    if (run->plan.dots)
        add_dot_products(item, panel, block, &tile);
    else
        add_products(item, panel, block, &tile);
    if (broken)
        add_broken(item, panel, block, &tile);
}
