/* Rows of a table by number: words and positions become vectors. */
#ifndef ATTN_NN_EMBEDDING_TABLE_H
#define ATTN_NN_EMBEDDING_TABLE_H

#include <stdint.h>

#include "nn/compute.h"
#include "nn/gradient.h"

/* y[t] = table[ids[t]], or y[t] += it, for `tokens` tokens; every id is known to be in the table.
 */
void embedding_table_forward(const struct compute *compute, const float *table, int64_t width,
                             int64_t tokens, const int32_t *ids, float *y, enum gradient_mode mode);

/* gradient[ids[t]] += dy[t], token by token in order: the same sums for any number of threads. */
void embedding_table_backward(const struct compute *compute, int64_t width, int64_t tokens,
                              const int32_t *ids, const float *dy, float *gradient);

#endif
