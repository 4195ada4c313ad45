/* Activations between the two linear layers of a feed-forward block. */
#ifndef ATTN_NN_ACTIVATION_H
#define ATTN_NN_ACTIVATION_H

#include <stdint.h>

#include "nn/compute.h"

enum activation {
    ACTIVATION_GELU_ERF, /* x·Φ(x); D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units" (2016) */
    ACTIVATION_GELU_TANH, /* the same paper's approximation by tanh */
    ACTIVATION_RELU,
    ACTIVATION_SILU /* x·σ(x); S. Elfwing et al. (2017) */
};

/* By the name in a config.json ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", …); false for a
 * name that is not known. */
bool activation_from_name(const char *name, enum activation *activation);

/* x[rows][width], packed: x = activation(x + bias) in place; bias is [width] or NULL. */
void activation_forward(const struct compute *compute, enum activation activation, int64_t rows,
                        int64_t width, const float *bias, float *x);

/* For learning, where x is kept: y = activation(x); and dx = dy∘activation'(x), where dx may be dy.
 */
void activation_apply(const struct compute *compute, enum activation activation, int64_t rows,
                      int64_t width, const float *x, float *y);
void activation_backward(const struct compute *compute, enum activation activation, int64_t rows,
                         int64_t width, const float *x, const float *dy, float *dx);

/* SwiGLU (N. Shazeer, "GLU Variants Improve Transformer" (2020)): y = SiLU(gate)∘up; y may be
 * either. Backward: d_gate and d_up from dy; each may be dy. */
void swiglu_forward(const struct compute *compute, int64_t rows, int64_t width, const float *gate,
                    const float *up, float *y);
void swiglu_backward(const struct compute *compute, int64_t rows, int64_t width, const float *gate,
                     const float *up, const float *dy, float *d_gate, float *d_up);

#endif
