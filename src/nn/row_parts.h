/* Rows cut into parts for sums over rows. How many there are depends on the rows alone: a sum a
 * part, added up in order, has the same bits for any number of threads. */
#ifndef ATTN_NN_ROW_PARTS_H
#define ATTN_NN_ROW_PARTS_H

#include <stdint.h>

#include "nn/compute.h"

enum { ROW_PARTS = 64 }; /* at most */

/* 0 where there is no row, else 1 to ROW_PARTS. */
int64_t row_parts(int64_t rows);

/* Calls body(user, part, first, count) for each part, which covers the rows first..first+count−1,
 * on the threads of the context; returns when all are done. */
void row_parts_for(const struct compute *compute, int64_t rows,
                   void (*body)(const void *user, int64_t part, int64_t first, int64_t count),
                   const void *user);

#endif
