/* One tile of a backward pass: a panel of queries and a block of keys. */
#ifndef ATTN_ATTENTION_BACKWARD_TILE_H
#define ATTN_ATTENTION_BACKWARD_TILE_H

#include "attention/backward_panel.h"

/* Rows of K and V of a block. */
struct attn_gradient_block {
    int64_t first, count;        /* keys of the sequence */
    struct attn_rows scores;     /* of K, as scores read them */
    struct attn_rows values;     /* of V */
    struct attn_rows keys;       /* of K in f32; rows that are not finite stand there as zeros */
    const uint32_t *packed_keys; /* or the same as products of bf16 pairs take it */
    bool broken;                 /* whether there are such */
    bool broken_keys[ATTN_KEY_BLOCK];
};

/* Reads the rows of keys span.begin..span.end−1, which are within one block of keys. */
void attn_gradient_block_read(struct attn_gradient_block *block,
                              const struct attn_backward_item *item, struct attn_key_span span);

/* Adds what the keys of `span`, which are among the block's, and the panel give to each other's
 * gradients. */
void attn_gradient_tile(const struct attn_backward_item *item, struct attn_gradient_panel *panel,
                        const struct attn_gradient_block *block, struct attn_key_span span);

#endif
