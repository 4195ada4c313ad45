/* Attention in double precision, straight from its definition: for every query
 *
 *     s_j = soft cap(scale · q·k_j) + bias_j − slope·|i + offset − j|, and what change_scores makes
 *           of it
 *     m = max_j s_j,  l = Σ_j exp(s_j − m),  p_j = exp(s_j − m) / l,  o = Σ_j p_j·v_j
 *
 * over the keys j that are kept (harness/reference_scores.h), with one whole row of scores in
 * memory, and no care for speed. Every setting of attn_params is known but `precision`, which is
 * taken as exact; elements are what their type stores. */
#ifndef ATTN_TESTS_HARNESS_REFERENCE_ATTENTION_H
#define ATTN_TESTS_HARNESS_REFERENCE_ATTENTION_H

#include "attn.h"
#include "harness/reference_scores.h"

/* Row-major; guarded memory of the test. Lk is reference_keys(). The *_error arrays say how far a
 * computation in f32 (f64 for f64 tensors) may be off, in first order and for one rounding (ε =
 * 2⁻²⁴; 2⁻⁵², which the reference shares) everywhere: a score s_j that sums terms of the total
 * magnitude S_j is off by ε·S_j, its weight by a factor 1 ± ε·(1 + S_j), and so on. Rounding o to a
 * 16-bit type is not counted. */
struct reference_attention {
    double *o;       /* [B, H, Lq, d_v] */
    double *m;       /* [B, H, Lq] */
    double *l;       /* [B, H, Lq] */
    double *lse;     /* [B, H, Lq]: m + ln l; −inf in a row without a key */
    double *weights; /* [B, H, Lq, Lk] */
    double *o_size;  /* Σ_j p_j·|v_j| */
    double *o_error;
    double *m_error;
    double *l_error;
    double *lse_error;
    double *weights_error;
};

/* Shapes and params are right and fit each other. */
void reference_attention(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         const attn_tensor *v, struct reference_attention *result);

#endif
