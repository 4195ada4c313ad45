/* Activations between the two linear layers of a feed-forward block. */
#ifndef ATTN_NN_ACTIVATION_H
#define ATTN_NN_ACTIVATION_H

#include <stdint.h>

#include "nn/compute.h"

enum activation {
    ACTIVATION_GELU_ERF, /* x·Φ(x); D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units" (2016) */
    ACTIVATION_GELU_TANH, /* the same paper's approximation by tanh */
    ACTIVATION_RELU
};

/* By the name in a config.json ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", …); false for a
 * name that is not known. */
bool activation_from_name(const char *name, enum activation *activation);

/* x[rows][width], packed: x = activation(x + bias) in place; bias is [width] or NULL. */
void activation_forward(const struct compute *compute, enum activation activation, int64_t rows,
                        int64_t width, const float *bias, float *x);

#endif
