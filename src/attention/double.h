/* Attention on tensors of f64, for checking: every number, product and sum in double precision, in
 * the order of the formula. It serves attn_decode as it serves attn_forward.
 *
 * A score callback gets scores rounded to f32, and those that it changes are f32 from there on.
 * Memory beside the output is one row of scores a thread. */
#ifndef ATTN_ATTENTION_DOUBLE_H
#define ATTN_ATTENTION_DOUBLE_H

#include "attention/backward_problem.h"
#include "attention/inspection.h"

/* Bytes of workspace that one thread takes for forward, weights and inspection, and for backward;
 * −1 where they leave 64 bits. */
int64_t attn_double_bytes(const struct attn_problem *problem);
int64_t attn_double_backward_bytes(const struct attn_problem *problem);

/* q, k, v, o and stats (data NULL: not wanted) of a resolved problem are f64. ATTN_ERROR_MEMORY. */
attn_status attn_double_forward(struct attn_context *context, const struct attn_problem *problem);

/* The part of the weights from `begin` on, as large as `weights`; all checked, q, k, stats and
 * weights f64. ATTN_ERROR_MEMORY. */
attn_status attn_double_weights(struct attn_context *context, const struct attn_problem *problem,
                                const attn_tensor *stats, const int64_t begin[4],
                                const attn_tensor *weights);

/* What is wanted of the rows' weights; problem->stats are those of the forward pass, or computed
 * again where their data is NULL: either way the bits are the same. ATTN_ERROR_MEMORY. */
attn_status attn_double_inspect(struct attn_context *context, const struct attn_problem *problem,
                                const struct attn_inspected *inspected);

/* The gradients that `backward` wants; batch, heads, queries and keys are not 0. ATTN_ERROR_MEMORY.
 */
attn_status attn_double_backward(struct attn_context *context, const struct attn_problem *problem,
                                 const struct attn_backward_problem *backward);

#endif
