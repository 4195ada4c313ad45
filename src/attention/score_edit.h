/* What stands between Q·Kᵀ and the softmax: which keys a row may keep, and its final scores. */
#ifndef ATTN_ATTENTION_SCORE_EDIT_H
#define ATTN_ATTENTION_SCORE_EDIT_H

#include "attention/problem.h"

/* The keys begin..end−1 that rows first..first+rows−1 of a batch may keep by lengths, causality and
 * window; begin = end where there is none. */
struct attn_key_range {
    int64_t begin, end;
};
struct attn_key_range attn_keys_of_rows(const struct attn_problem *problem, int64_t batch,
                                        int64_t first, int64_t rows);

/* A tile of scores [keys][lanes]: `rows` queries from `query` on, `keys` keys from `key` on. */
struct attn_tile {
    int64_t batch, head, query, key;
    int64_t rows, keys;
    int lanes;
};

/* Whether attn_edit_scores would change anything in the tile. */
bool attn_tile_needs_edit(const struct attn_problem *problem, const struct attn_tile *tile);

/* From scale·(q·k) to the final scores: soft cap, bias, ALiBi, and −inf for every excluded key. */
void attn_edit_scores(const struct attn_problem *problem, const struct attn_tile *tile, float *s);

#endif
