/* The gradients of attention in double precision, straight from their definition (T. Dao et al.,
 * "FlashAttention" (2022), appendix B.4): with the weights p and the factors f of dropout, for
 * every query
 *
 *     D = Σ_c do_c·o_c        dP_j = Σ_c do_c·v_jc        ds_j = p_j·(f_j·dP_j − D)
 *     dv_j += p_j·f_j·do      dbias_j += ds_j             dsink −= p_sink·D
 *     ds_j *= 1 − tanh²(scale·q·k_j / cap)                where there is a cap
 *     dq += scale·ds_j·k_j    dk_j += scale·ds_j·q
 *
 * over the keys j that are kept, one whole row at a time. Every setting that attn_backward takes is
 * known, but precision is taken as exact; the derivative of change_scores, which must not depend on
 * rounding, is what change_gradients makes of gradients of 1. */
#ifndef ATTN_TESTS_HARNESS_REFERENCE_GRADIENT_H
#define ATTN_TESTS_HARNESS_REFERENCE_GRADIENT_H

#include "attn.h"

struct reference_gradient_call {
    const attn_params *params;
    const attn_tensor *q, *k, *v, *d_o;
    attn_type o_type;         /* of the o that attn_backward is given */
    double o_weight_roundoff; /* what its weights were rounded by before they met v */
    double weight_roundoff;   /* what weights and ds are, before a product; 0: not */
};

/* Row-major, in the shape of what each is the gradient of; bias and sinks NULL where there are
 * none. Guarded memory of the test. The *_error arrays count one rounding everywhere, as those of
 * harness/reference_attention.h; that of o's type is counted too, that of the gradients' is not. */
struct reference_gradient {
    double *q, *k, *v, *bias, *sinks;
    double *q_error, *k_error, *v_error, *bias_error, *sinks_error;
};

/* Shapes and params are right and fit each other; k and v are neither i8 nor paged. */
void reference_gradient(const struct reference_gradient_call *call,
                        struct reference_gradient *result);

#endif
