/* A linear layer over CBLAS: y = x·Wᵀ + b. */
#ifndef ATTN_NN_LINEAR_H
#define ATTN_NN_LINEAR_H

#include <stdint.h>

#include "nn/compute.h"
#include "nn/gradient.h"

/* How a weight lies in memory. */
enum linear_layout {
    LINEAR_OUT_IN, /* [out][in], row-major: PyTorch's nn.Linear */
    LINEAR_IN_OUT  /* [in][out], row-major: GPT-2's Conv1D */
};

/* Weight and bias belong to the caller. */
struct linear {
    const float *weight;
    const float *bias; /* [out] or NULL */
    int64_t in, out;
    enum linear_layout layout;
    int64_t weight_stride; /* elements a row of weight; 0: its rows are packed. So a part of a wider
                              matrix, such as the queries of a packed projection, is a layer too */
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

/* Where the gradients of weight and bias go, which lie as these do; NULL: not wanted. */
struct linear_gradient {
    float *weight, *bias;
    enum gradient_mode mode;
};

/* From dy[rows][out], the gradient of y:
 *     dx = dy·W (written, or added with `dx_mode` GRADIENT_ADD; NULL: not wanted)
 *     dW = dyᵀ·x      db = Σ_rows dy
 * x is what linear_forward was given. db has the same bits for any number of threads; the products
 * are CBLAS's, and their last bits may be others with another number of threads (OpenBLAS's are).
 */
void linear_backward(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                     const float *dy, int64_t dy_stride, float *dx, int64_t dx_stride,
                     enum gradient_mode dx_mode, const struct linear_gradient *gradient);

#endif
