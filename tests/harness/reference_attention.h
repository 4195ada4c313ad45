/* Attention in double precision, straight from its definition: for every query
 *
 *     s_j = soft cap(scale · q·k_j) + bias_j − slope·|i + offset − j|
 *     m = max_j s_j,  l = Σ_j exp(s_j − m),  p_j = exp(s_j − m) / l,  o = Σ_j p_j·v_j
 *
 * over the keys j that are kept, with one whole row of scores in memory, and no care for speed. */
#ifndef ATTN_TESTS_HARNESS_REFERENCE_ATTENTION_H
#define ATTN_TESTS_HARNESS_REFERENCE_ATTENTION_H

#include "attn.h"

/* Row-major; guarded memory of the test. The *_error arrays say how far a computation in f32 may be
 * off, in first order and for one rounding (ε = 2⁻²⁴) everywhere: a score s_j that sums terms of
 * the total magnitude S_j is off by ε·S_j, its weight by a factor 1 ± ε·(1 + S_j), and so on. */
struct reference_attention {
    double *o;       /* [B, H, Lq, d_v] */
    double *m;       /* [B, H, Lq] */
    double *l;       /* [B, H, Lq] */
    double *lse;     /* [B, H, Lq]: m + ln l; −inf in a row without a key */
    double *weights; /* [B, H, Lq, Lk] */
    double *o_error;
    double *m_error;
    double *l_error;
    double *lse_error;
    double *weights_error;
};

/* Shapes and params are right and fit each other. */
void reference_attention(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         const attn_tensor *v, struct reference_attention *result);

/* i + offset: where query 0 stands among the keys. */
int64_t reference_offset(const attn_params *params, int64_t queries, int64_t keys);

/* Whether lengths, causal, window, keep and bias leave key j to query i. (A score of −inf excludes
 * too.) */
int reference_keeps(const attn_params *params, int64_t b, int64_t h, int64_t i, int64_t j,
                    int64_t queries, int64_t keys);

#endif
