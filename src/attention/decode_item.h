/* The rows of one item of a decode call, on their way through the keys. */
#ifndef ATTN_ATTENTION_DECODE_ITEM_H
#define ATTN_ATTENTION_DECODE_ITEM_H

#include "attention/decode_plan.h"

struct attn_decode_item {
    const struct attn_kernels *kernels;
    const struct attn_problem *problem;
    const struct attn_decode_storage *key_kernels, *value_kernels;
    struct attn_sequence sequence;
    int64_t key_head, group;
    int64_t first, rows; /* of the key head's rows: decode_plan.h */
    const struct attn_decode_scratch *scratch;
};

static inline int64_t attn_decode_head(const struct attn_decode_item *item, int64_t row)
{
    return item->key_head * item->group + (item->first + row) / item->sequence.queries;
}

static inline int64_t attn_decode_query(const struct attn_decode_item *item, int64_t row)
{
    return (item->first + row) % item->sequence.queries;
}

/* Rows as far as a pass takes them together. */
struct attn_decode_pass {
    int64_t row, count; /* of the item; 1 ≤ count ≤ ATTN_DECODE_QUERIES */
};

/* The state of `row`, where states begin with row 0 of the item. */
static inline struct attn_decode_state attn_decode_state_at(const struct attn_decode_state *state,
                                                            int64_t row, int64_t d_v)
{
    return (struct attn_decode_state){state->m + row, state->l + row,
                                      state->output + row * attn_decode_width(d_v)};
}

/* Packs the item's queries and finds which keys each row keeps. */
void attn_decode_item_begin(struct attn_decode_item *item);

/* All rows' states over the keys of one chunk. */
void attn_decode_take_chunk(struct attn_decode_item *item, int64_t chunk,
                            const struct attn_decode_state *state);

/* The state before the first key: nothing, or the sink. */
void attn_decode_begin_row(const struct attn_problem *problem, int64_t head, float *m, float *l);

/* Writes the item's outputs and statistics from its total state. */
void attn_decode_item_end(struct attn_decode_item *item);

/* Final scores of keys begin..end−1 of the block that starts at key `block`: from scale·(q·k) in
 * s[key − block][stride] to what the softmax takes. (decode_edit.c) */
void attn_decode_edit(const struct attn_decode_item *item, struct attn_decode_pass pass,
                      int64_t block, struct attn_key_span span, float *s);

/* Rows first..first+count−1 of K or V, count ≤ ATTN_DECODE_BLOCK, as kernels read them.
 * (decode_rows.c) */
struct attn_stored_rows attn_decode_rows(const struct attn_decode_item *item,
                                         const attn_tensor *tensor, const attn_tensor *scales,
                                         const struct attn_decode_rows *scratch, int64_t first,
                                         int64_t count);

/* Query `row` in the order of the kernels, and its output back. (decode_rows.c) */
void attn_decode_pack_query(const struct attn_decode_item *item, int64_t row, float *packed);
void attn_decode_unpack_output(const struct attn_decode_item *item, int64_t row,
                               const float *packed);

#endif
