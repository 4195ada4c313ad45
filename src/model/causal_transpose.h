/* Matrices the other way round. */
#ifndef ATTN_MODEL_CAUSAL_TRANSPOSE_H
#define ATTN_MODEL_CAUSAL_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

/* turned[columns][rows] from matrix[rows][columns], which may have any alignment; elements of
 * `size` bytes, 2 or 4. */
void causal_transpose(const void *matrix, int64_t rows, int64_t columns, size_t size, void *turned);

#endif
