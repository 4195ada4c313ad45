/* Multi-head self-attention from its definition, in double and without a tile, a BLAS or a view. */
#ifndef ATTN_TESTS_SELF_ATTENTION_REFERENCE_H
#define ATTN_TESTS_SELF_ATTENTION_REFERENCE_H

#include "nn/self_attention.h"

/* The order of the four projections here. */
enum { REFERENCE_QUERY, REFERENCE_KEY, REFERENCE_VALUE, REFERENCE_OUTPUT, REFERENCE_PROJECTIONS };

struct reference_layer {
    int64_t width, heads, d;
    bool causal;
    struct attention_dropout dropout; /* rate 0: none */
    /* [out][in] of each projection, whatever lies in the layer's memory; biases [out]. */
    double *weight[REFERENCE_PROJECTIONS], *bias[REFERENCE_PROJECTIONS];
};

/* y[tokens][width], with the output's bias, of x[tokens][width]. */
void reference_self_attention(const struct reference_layer *layer, const struct packed_batch *batch,
                              const double *x, double *y);

#endif
