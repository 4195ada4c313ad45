/* A checked call of attn_backward: what it has beside an attn_problem, whose o and stats are inputs
 * here. */
#ifndef ATTN_ATTENTION_BACKWARD_PROBLEM_H
#define ATTN_ATTENTION_BACKWARD_PROBLEM_H

#include "attention/problem.h"

struct attn_backward_problem {
    attn_tensor d_o; /* [B, H, Lq, d_v], F32 or q's type */

    /* Which gradients are wanted; of the others the tensors below are zeros. */
    bool wants_q, wants_k, wants_v, wants_bias, wants_sinks;
    attn_tensor d_q, d_k, d_v; /* the shapes of q, k and v; F32 or their types */
    attn_tensor d_bias;        /* of the bias' shape, F32 (F64); axes of size 1 have stride 0 */
    attn_tensor d_sinks;       /* [1, H, 1, 1] F32 (F64) */
};

/* Checks all arguments of a call, and fills both. With F64 tensors all of them are F64. */
attn_status attn_backward_resolve(struct attn_problem *problem,
                                  struct attn_backward_problem *backward,
                                  struct attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                  const attn_tensor *o, const attn_tensor *stats,
                                  const attn_tensor *d_o, const attn_gradients *gradients);

/* What this version does not do backwards; for attn_explain too. */
attn_status attn_backward_check(const struct attn_problem *problem, struct attn_error *error);

/* Writes 0 into every element of the gradients that are wanted. */
void attn_backward_clear(const struct attn_backward_problem *backward);

#endif
