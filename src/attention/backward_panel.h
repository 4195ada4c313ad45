/* Panels of queries in a backward pass: what is packed before the keys, and dQ behind them. */
#ifndef ATTN_ATTENTION_BACKWARD_PANEL_H
#define ATTN_ATTENTION_BACKWARD_PANEL_H

#include "attention/backward_plan.h"

struct attn_backward_run {
    struct attn_problem problem; /* dot_values: products are those of bf16 pairs */
    struct attn_problem exact;   /* the same with keys in f32 */
    struct attn_backward_problem backward;
    const struct attn_kernels *kernels;
    struct attn_backward_plan plan;
    struct attn_backward_shared shared;
    char *workspace; /* of the threads */
};

/* A chunk of the keys of a part and key head, on its thread. */
struct attn_backward_item {
    const struct attn_backward_run *run;
    struct attn_sequence sequence;
    int64_t key_head, chunk;
    struct attn_key_span keys;
    struct attn_backward_scratch *scratch;
};

/* Panels of the item's sequence over all query heads of its group. */
int64_t attn_backward_panels(const struct attn_backward_item *item);

/* Panel `index` of those: packs its rows where it keeps a key of the chunk. dQ starts from 0. */
void attn_backward_panel_begin(const struct attn_backward_item *item,
                               struct attn_gradient_panel *panel, int64_t index);

/* Hands its dQ on: to the output, or to where those of all chunks wait. */
void attn_backward_panel_end(const struct attn_backward_item *item,
                             struct attn_gradient_panel *panel);

/* Bits of `count` numbers tell whether all are finite. */
bool attn_all_finite(const float *numbers, int64_t count);
bool attn_all_finite_halves(const uint16_t *halves, int64_t count);

/* Where row `query` of a head stands among all rows [B, H, Lq]. */
static inline int64_t attn_backward_row(const struct attn_problem *problem,
                                        const struct attn_sequence *sequence, int64_t head,
                                        int64_t query)
{
    return (sequence->batch * problem->heads + head) * problem->queries + sequence->query_begin +
           query;
}

#endif
