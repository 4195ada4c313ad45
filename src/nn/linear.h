/* A linear layer over CBLAS: y = x·Wᵀ + b. */
#ifndef ATTN_NN_LINEAR_H
#define ATTN_NN_LINEAR_H

#include <stdint.h>

#include "nn/compute.h"

/* Weights as PyTorch stores them; both belong to the caller. */
struct linear {
    const float *weight; /* [out][in], row-major */
    const float *bias;   /* [out] or NULL */
    int64_t in, out;
};

/* y[rows][out] = x[rows][in]·weightᵀ, without the bias: the layer that follows adds it on its way.
 * x and y are row-major with `x_stride` and `y_stride` elements a row. rows may be 0. */
void linear_product(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                    float *y, int64_t y_stride);

/* y += x·weightᵀ, without the bias: the residual sum x + f(x) in one pass. */
void linear_accumulate(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                       float *y, int64_t y_stride);

/* The product with the bias. */
void linear_forward(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                    float *y, int64_t y_stride);

#endif
