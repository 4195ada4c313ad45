/* Linear layers whose weights stay as a model file stores them, mapped: y = x·Wᵀ + b. */
#ifndef ATTN_NN_WEIGHT_MATRIX_H
#define ATTN_NN_WEIGHT_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/matrix_kernels.h"
#include "nn/compute.h"

/* [out][in], rows packed one behind the other; belongs to the caller. */
struct weight_matrix {
    enum attn_matrix_type type;
    const void *data; /* of any alignment */
    int64_t out, in;
};

/* Row `row` as f32 into values[in]: what an embedding looks up. */
void weight_matrix_row(const struct compute *compute, const struct weight_matrix *matrix,
                       int64_t row, float *values);

/* Memory of products: packed vectors and panels, and unpacked weights a thread. */
struct matrix_workspace;

/* For matrices of at most `in` columns, and at most `rows` rows of x. */
bool matrix_workspace_create(struct matrix_workspace **workspace, const struct compute *compute,
                             int64_t rows, int64_t in, struct attn_error *error);
void matrix_workspace_destroy(struct matrix_workspace *workspace); /* NULL is allowed */

enum matrix_output { MATRIX_SET, MATRIX_ADD /* y += …: the residual sum */ };

/* One of several layers that read the same x. */
struct matrix_product {
    const struct weight_matrix *weight;
    const float *bias; /* [out] or NULL */
    float *y;          /* [rows][y_stride]; not x */
    int64_t y_stride;
    enum matrix_output output;
};

/* y = x·Wᵀ + b for each product; all have the same `in`. x is [rows][x_stride]. Up to 8 rows go
 * through the matrix × vector kernels, more are packed as panels while a block of W is unpacked
 * once into cache for all of them; that is fastest where rows of x and y begin with cache lines and
 * lie on huge pages (attn_allocator_default of base/memory.h). With ATTN_PRECISION_BF16, and where
 * the CPU has products of bf16 pairs, panels and weights are rounded to bf16; sums are f32. The
 * same numbers for any number of threads; a row's numbers do not depend on the rows beside it as
 * long as their number stays on the same side of that choice (else within rounding). */
void matrix_products(const struct compute *compute, struct matrix_workspace *workspace,
                     attn_precision precision, int64_t rows, const float *x, int64_t x_stride,
                     const struct matrix_product *products, int count);

#endif
