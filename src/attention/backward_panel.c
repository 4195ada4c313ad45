#include "attention/backward_panel.h"

#include <math.h>
#include <string.h>

#include "kernel/dot_kernels.h"
#include "kernel/gradient_kernels.h"

bool attn_all_finite(const float *numbers, int64_t count)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t broken = 0;
    for (int64_t c = 0; c < count; c++) {
        uint32_t bits;
        memcpy(&bits, numbers + c, sizeof bits);
        broken |= (bits & exponent) == exponent;
    }
    return !broken;
}

bool attn_all_finite_halves(const uint16_t *halves, int64_t count)
{
    const uint16_t exponent = 0x7f80;
    uint16_t broken = 0;
    for (int64_t c = 0; c < count; c++)
        broken = (uint16_t)(broken | ((halves[c] & exponent) == exponent));
    return !broken;
}

int64_t attn_backward_panels(const struct attn_backward_item *item)
{
    int64_t lanes = item->run->plan.lanes, queries = item->sequence.queries;
    return (queries / lanes + (queries % lanes > 0)) * item->run->plan.group;
}

static bool keeps_some(const struct attn_backward_item *item,
                       const struct attn_gradient_panel *panel)
{
    return !attn_span_is_empty(attn_keys_within(&panel->keys, item->keys.begin, item->keys.end));
}

/* Rows of bf16 in pairs of neighbours; those that are not finite become zeros. */
static void pair_rows(const struct attn_backward_item *item, const attn_tensor *tensor,
                      const struct attn_gradient_panel *panel, int64_t width,
                      struct attn_gradient_rows *rows)
{
    uint16_t *halves = item->scratch->halves;
    uint32_t *pairs = (uint32_t *)(void *)rows->copy;
    attn_read_halves(tensor, item->sequence.batch, panel->head,
                     item->sequence.query_begin + panel->query, panel->rows, width, halves);
    rows->broken = 0;
    for (int64_t n = 0; n < panel->rows; n++) {
        if (attn_all_finite_halves(halves + n * width, width))
            continue;
        rows->broken |= UINT32_C(1) << n;
        memset(halves + n * width, 0, (size_t)width * sizeof *halves);
    }
    item->run->kernels->dot_gradients->pair_rows(halves, width, panel->rows, width, pairs);
    rows->pairs = pairs;
    rows->stride = width;
}

/* Rows of f32 where they are, if whole vectors may be read there; else a copy. */
static void take_rows(const struct attn_backward_item *item, const attn_tensor *tensor,
                      const struct attn_gradient_panel *panel, int64_t width,
                      struct attn_gradient_rows *rows)
{
    const struct attn_backward_run *run = item->run;
    int64_t dim = tensor->shape[3], row = item->sequence.query_begin + panel->query;
    int64_t batch = item->sequence.batch;
    rows->broken = 0;
    if (attn_backward_in_place(run->kernels, tensor) &&
        attn_all_finite(attn_element(tensor, batch, panel->head, row, 0), panel->rows * dim)) {
        rows->data = attn_element(tensor, batch, panel->head, row, 0);
        rows->stride = dim;
        return;
    }
    attn_read_rows(run->kernels, tensor, batch, panel->head, row, panel->rows, rows->copy, width);
    for (int64_t n = 0; n < panel->rows; n++) {
        float *copy = rows->copy + n * width;
        if (!attn_all_finite(copy, dim)) {
            rows->broken |= UINT32_C(1) << n;
            memset(copy, 0, (size_t)dim * sizeof *copy);
        }
        memset(copy + dim, 0, (size_t)(width - dim) * sizeof *copy);
    }
    rows->data = rows->copy;
    rows->stride = width;
}

/* Whether lane n of a panel [d][lanes] is all zeros. */
static bool is_zero(const float *panel, int lanes, int64_t d, int n)
{
    for (int64_t c = 0; c < d; c++)
        if (panel[c * lanes + n] != 0.0f)
            return false;
    return true;
}

/* d_o, and D = rowsum(d_o∘o). Where o is 0, as of a row without a key, so is D, whatever d_o is. */
static void pack_d_o(const struct attn_backward_item *item, struct attn_gradient_panel *panel)
{
    const struct attn_backward_run *run = item->run;
    const attn_tensor *tensor = &run->backward.d_o;
    struct attn_backward_scratch *scratch = item->scratch;
    int64_t d_v = run->problem.d_v, batch = item->sequence.batch;
    int64_t row = item->sequence.query_begin + panel->query;
    float *d_o = run->plan.dots ? scratch->d_o : panel->d_o;
    attn_pack_rows(run->kernels, tensor, batch, panel->head, row, panel->rows, panel->lanes,
                   scratch->row, d_o);
    attn_pack_rows(run->kernels, &run->problem.o, batch, panel->head, row, panel->rows,
                   panel->lanes, scratch->row, scratch->o);
    run->kernels->gradients->dots(d_o, scratch->o, panel->lanes, d_v, panel->delta);
    for (int n = 0; n < panel->lanes; n++)
        if (!isfinite(panel->delta[n]) && is_zero(scratch->o, panel->lanes, d_v, n))
            panel->delta[n] = 0.0f;
    if (run->plan.dots)
        run->kernels->dots->pack_queries(
            attn_address(tensor, (int64_t)sizeof(uint16_t), batch, panel->head, row, 0),
            tensor->stride[2], tensor->stride[3], panel->rows, d_v, panel->lanes,
            (uint32_t *)(void *)panel->d_o);
}

static void read_stats(const struct attn_backward_item *item, struct attn_gradient_panel *panel)
{
    const attn_tensor *stats = &item->run->problem.stats;
    int64_t row = item->sequence.query_begin + panel->query;
    for (int n = 0; n < panel->lanes; n++) {
        panel->m[n] = 0.0f;
        panel->inverse_l[n] = 0.0f;
        if (n >= panel->rows)
            continue;
        float l = *attn_element(stats, item->sequence.batch, panel->head, row + n, 1);
        panel->m[n] = *attn_element(stats, item->sequence.batch, panel->head, row + n, 0);
        panel->inverse_l[n] = l == 0.0f ? 0.0f : 1.0f / l;
    }
}

void attn_backward_panel_begin(const struct attn_backward_item *item,
                               struct attn_gradient_panel *panel, int64_t index)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_problem *problem = &run->problem;
    const struct attn_backward_plan *plan = &run->plan;
    int vector_lanes = run->kernels->vector_lanes;
    panel->head = item->key_head * plan->group + index % plan->group;
    panel->query = index / plan->group * plan->lanes;
    int64_t left = item->sequence.queries - panel->query;
    panel->rows = left < plan->lanes ? left : plan->lanes;
    panel->lanes = panel->rows <= vector_lanes ? vector_lanes : plan->lanes;
    panel->keys =
        attn_keys_of_rows(problem, &item->sequence, panel->head, panel->query, panel->rows);
    memset(panel->d_q, 0, (size_t)(problem->d_qk * panel->lanes) * sizeof *panel->d_q);

    /* The first chunk leaves D for the sinks. */
    bool leaves_delta = run->backward.wants_sinks && item->chunk == 0;
    if (leaves_delta || keeps_some(item, panel))
        pack_d_o(item, panel);
    if (leaves_delta)
        memcpy(run->shared.delta +
                   attn_backward_row(problem, &item->sequence, panel->head, panel->query),
               panel->delta, (size_t)panel->rows * sizeof *panel->delta);
    if (!keeps_some(item, panel))
        return;
    attn_pack_queries(run->kernels, problem, &item->sequence, panel->head, panel->query,
                      panel->rows, panel->lanes, item->scratch->row, panel->queries);
    read_stats(item, panel);
    if (plan->dots) {
        pair_rows(item, &problem->q, panel, plan->key_width, &panel->query_rows);
        pair_rows(item, &run->backward.d_o, panel, plan->value_width, &panel->d_o_rows);
    } else {
        take_rows(item, &problem->q, panel, plan->key_width, &panel->query_rows);
        take_rows(item, &run->backward.d_o, panel, plan->value_width, &panel->d_o_rows);
    }
}

void attn_backward_panel_end(const struct attn_backward_item *item,
                             struct attn_gradient_panel *panel)
{
    const struct attn_backward_run *run = item->run;
    const struct attn_problem *problem = &run->problem;
    int64_t d_qk = problem->d_qk;
    if (!run->backward.wants_q || d_qk == 0)
        return;
    if (run->plan.chunks > 1) {
        int64_t all_rows = problem->batch * problem->heads * problem->queries;
        int64_t row = item->chunk * all_rows +
                      attn_backward_row(problem, &item->sequence, panel->head, panel->query);
        run->kernels->unpack_output(panel->d_q, panel->lanes, d_qk, run->shared.d_q + row * d_qk,
                                    d_qk, 1, panel->rows);
        return;
    }
    for (int64_t i = 0; i < d_qk * panel->lanes; i++)
        panel->d_q[i] *= problem->scale;
    attn_unpack_rows(run->kernels, &run->backward.d_q, item->sequence.batch, panel->head,
                     item->sequence.query_begin + panel->query, panel->rows, panel->lanes,
                     item->scratch->row, panel->d_q);
}
