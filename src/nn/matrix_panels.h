/* Products of stored weights with many rows of x: lanes are rows of x, as they are queries in
 * attention, and rows of weights stand where keys do. */
#ifndef ATTN_NN_MATRIX_PANELS_H
#define ATTN_NN_MATRIX_PANELS_H

#include "nn/matrix_workspace.h"

/* matrix_products for any number of rows up to the workspace's. */
void matrix_panels_multiply(const struct compute *compute, struct matrix_workspace *workspace,
                            attn_precision precision, int64_t rows, const float *x,
                            int64_t x_stride, const struct matrix_product *products, int count);

#endif
