/* Work on the rows of a matrix, shared by threads in blocks. */
#ifndef ATTN_NN_ROW_BLOCKS_H
#define ATTN_NN_ROW_BLOCKS_H

#include <stdint.h>

#include "nn/compute.h"

/* Calls body(user, first, count) for blocks that cover rows 0..rows−1 of `width` numbers each, on
 * the threads of the context; returns when all are done. */
void row_blocks_for(const struct compute *compute, int64_t rows, int64_t width,
                    void (*body)(const void *user, int64_t first, int64_t count), const void *user);

#endif
