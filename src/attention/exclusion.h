/* Which keys the rows of a tile exclude, as one bit a score: no mask is ever expanded to floats. */
#ifndef ATTN_ATTENTION_EXCLUSION_H
#define ATTN_ATTENTION_EXCLUSION_H

#include "attention/sequence.h"

/* A tile of scores: `rows` queries from `query` on with `keys` ≤ ATTN_KEY_BLOCK keys from `key` on,
 * as positions in the sequence. Forward holds it as [keys][lanes]; decode as rows of keys. */
struct attn_tile {
    const struct attn_sequence *sequence;
    int64_t head, query, key;
    int64_t rows, keys;
    int lanes;
};

/* Keys behind the tile that its rows will most likely meet next: what their masks are worth asking
 * the memory for. Many tiles of other rows come before, time enough. */
static inline int64_t attn_tile_keys_ahead(const struct attn_tile *tile)
{
    int64_t left = tile->sequence->keys - tile->key - tile->keys;
    return left < ATTN_KEY_BLOCK ? left : ATTN_KEY_BLOCK;
}

/* Which keys of a tile its rows exclude by lengths, causality, window, prefix, key_range, documents
 * and keep. Bit t mod 32 of words[t / 32][n] is set where row n excludes key t; lanes from rows on
 * exclude all; bits from keys on are of no meaning. */
enum attn_exclusion { ATTN_EXCLUDES_NONE, ATTN_EXCLUDES_SOME, ATTN_EXCLUDES_ALL };
struct attn_exclusions {
    enum attn_exclusion kind; /* the words are filled for ATTN_EXCLUDES_SOME only */
    _Alignas(64) uint32_t words[ATTN_KEY_WORDS * ATTN_MAX_LANES]; /* [ATTN_KEY_WORDS][lanes] */
};
void attn_tile_exclusions(const struct attn_kernels *kernels, const struct attn_problem *problem,
                          const struct attn_tile *tile, struct attn_exclusions *exclusions);

#endif
