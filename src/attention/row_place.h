/* Where a row of K or V stands in its tensor: along the length, or in a page. */
#ifndef ATTN_ATTENTION_ROW_PLACE_H
#define ATTN_ATTENTION_ROW_PLACE_H

#include "attention/sequence.h"

struct attn_row_place {
    int64_t batch; /* index of the tensor's first axis: a batch or a page */
    int64_t row;   /* of its third */
    int64_t run;   /* rows from there on that follow each other along the third */
};

/* Of key `key` of a sequence, 0 ≤ key < sequence->keys. */
static inline struct attn_row_place attn_row_place_of(const struct attn_problem *problem,
                                                      const struct attn_sequence *sequence,
                                                      int64_t key)
{
    if (!problem->block_table) {
        int64_t row = sequence->key_begin + key;
        return (struct attn_row_place){sequence->batch, row, problem->keys - row};
    }
    const int32_t *pages = problem->block_table + sequence->index * problem->block_table_width;
    int64_t row = key % problem->page_length;
    return (struct attn_row_place){pages[key / problem->page_length], row,
                                   problem->page_length - row};
}

#endif
