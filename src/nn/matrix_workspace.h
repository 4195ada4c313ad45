/* The memory of products with stored weights, and what their two ways have in common. */
#ifndef ATTN_NN_MATRIX_WORKSPACE_H
#define ATTN_NN_MATRIX_WORKSPACE_H

#include "kernel/kernel.h"
#include "nn/weight_matrix.h"

enum {
    /* Rows of x that go through matrix × vector kernels, at most: two passes over weights that are
     * in cache take less time than unpacking them, three take more. */
    MATRIX_FEW_ROWS = 2 * ATTN_MATRIX_VECTORS,
    /* Rows of weights in one item of work, at most: with few rows of x, and with many. */
    MATRIX_VECTOR_ROWS = 512,
    MATRIX_BLOCK_ROWS = 96
};

/* One thread's memory. */
struct matrix_scratch {
    float *weights; /* a block of rows, unpacked: matrix_block_rows(in) of matrix_row_stride(in) */
    float *sums;    /* [MATRIX_BLOCK_ROWS][ATTN_MAX_LANES] */
    float *rows; /* [ATTN_MAX_LANES][MATRIX_BLOCK_ROWS] or [MATRIX_FEW_ROWS][MATRIX_VECTOR_ROWS] */
    float *maximum; /* [ATTN_MAX_LANES]: what `scores` writes, and nobody reads */
};

struct matrix_workspace {
    char *vectors; /* [ATTN_MATRIX_TYPES][MATRIX_FEW_ROWS] packed vectors */
    int64_t bytes_a_type;
    float *panels; /* of all rows of x; NULL where those are always few */
    char *scratch; /* of the threads */
    int64_t bytes_a_thread;
    int64_t block_numbers; /* that a thread's `weights` has room for */
};

/* Numbers from one unpacked row to the next: whole cache lines, an odd count of them, so that the
 * rows of a tile do not fall on the same few sets of the cache. */
int64_t matrix_row_stride(int64_t in);

/* Rows of weights that are unpacked at once: a multiple of what a tile takes. */
int64_t matrix_block_rows(int64_t in);

struct matrix_scratch matrix_scratch_of(const struct matrix_workspace *workspace, int thread);

/* y = sums + bias, or y += that, for columns first..first+columns−1 of the product's y and its rows
 * row..row+rows−1; sums[rows][stride]. */
void matrix_write(const struct matrix_product *product, int64_t row, int64_t rows, int64_t first,
                  int64_t columns, const float *sums, int64_t stride);

/* Whether a product's sums are its y. */
static inline bool matrix_is_plain(const struct matrix_product *product)
{
    return product->output == MATRIX_SET && !product->bias;
}

#endif
