/* What forward, weights and backward do alike with one panel of queries and one tile of keys, so
 * that a score has the same bits in all. */
#ifndef ATTN_ATTENTION_PANEL_H
#define ATTN_ATTENTION_PANEL_H

#include "attention/rows.h"
#include "attention/score_edit.h"
#include "attention/scratch.h"

/* One thread's memory for a tile. */
struct attn_tile_scratch {
    float *scores; /* [ATTN_KEY_BLOCK][ATTN_MAX_LANES] */
    float *before; /* [ATTN_MAX_LANES] */
    struct attn_edit_scratch edit;
    struct attn_exclusions *exclusions;
};
void attn_tile_scratch_take(struct attn_tile_scratch *tile, const struct attn_problem *problem,
                            struct attn_scratch *scratch);

/* Final scores of a tile into scratch->scores[keys][lanes], −inf for excluded keys, and m raised to
 * their maximum. `queries` is the packed panel, `keys` the tile's rows of K. False, with nothing
 * done, where no row keeps any of the keys. */
bool attn_tile_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const float *queries, struct attn_rows keys,
                      const struct attn_tile_scratch *scratch, float *m);

#endif
