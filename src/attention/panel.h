/* What forward and weights do alike with one panel of queries and one block of keys, so that a
 * score has the same bits in both. */
#ifndef ATTN_ATTENTION_PANEL_H
#define ATTN_ATTENTION_PANEL_H

#include "attention/score_edit.h"

/* Rows of K or V whose elements lie side by side. */
struct attn_rows {
    const float *data;
    int64_t stride;
};

/* Rows first..first+count−1 of one head: where they are, or copied to scratch[count][dim] where the
 * elements of a row lie apart. */
struct attn_rows attn_side_by_side(const attn_tensor *tensor, int64_t batch, int64_t head,
                                   int64_t first, int64_t count, float *scratch);

/* Final scores of a tile into s[keys][lanes], −inf for excluded keys, and m raised to their
 * maximum. `queries` is the packed panel, `keys` the tile's rows of K. */
void attn_tile_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const float *queries, struct attn_rows keys,
                      float *s, float *m);

#endif
