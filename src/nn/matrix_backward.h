/* Back through a linear layer whose weights stay as a file stores them: dx = dy·W. */
#ifndef ATTN_NN_MATRIX_BACKWARD_H
#define ATTN_NN_MATRIX_BACKWARD_H

#include "nn/gradient.h"
#include "nn/weight_matrix.h"

/* Floats that matrix_backward works in: some rows of weights as numbers, for matrices of at most
 * `in` columns. */
int64_t matrix_backward_workspace(int64_t in);

/* From dy[rows][dy_stride], the gradient of y = x·Wᵀ + b, that of x: dx[rows][dx_stride], written
 * or added to. dx is not dy, and W has a row at least. What is stored as aligned f32 is multiplied
 * where it lies; other types are unpacked block by block, and a sum over `out` is one of sums over
 * blocks. The products are CBLAS's, and their last bits may be others with another number of
 * threads. */
void matrix_backward(const struct compute *compute, const struct weight_matrix *weight,
                     int64_t rows, const float *dy, int64_t dy_stride, float *dx, int64_t dx_stride,
                     enum gradient_mode dx_mode, float *workspace);

#endif
