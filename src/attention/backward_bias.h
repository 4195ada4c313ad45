/* Gradients of what is added to scores: of the bias, and of the sinks. */
#ifndef ATTN_ATTENTION_BACKWARD_BIAS_H
#define ATTN_ATTENTION_BACKWARD_BIAS_H

#include "attention/backward_panel.h"

/* Zeros for the gradient of the bias, row by row: for attn_context_run, with the run as state and
 * as many items. */
int64_t attn_backward_bias_rows(const struct attn_backward_run *run);
void attn_backward_clear_bias_row(void *run, int64_t row, int thread);

/* Adds a tile's ∂L/∂s, ds[keys][lanes], to the gradient of the bias. */
void attn_backward_add_bias(const struct attn_backward_run *run, const struct attn_tile *tile,
                            const float *ds);

/* The gradient of a head's sink, when run->shared.delta is complete; for attn_context_run:
 *     −Σ P_sink·D     with P_sink = exp(sink − m)/l, over batches and queries, in f64. */
void attn_backward_sink(void *run, int64_t head, int thread);

#endif
