/* Documents of keys, block by block: what skips keys of other documents without a look at each. */
#ifndef ATTN_ATTENTION_DOCUMENT_BLOCKS_H
#define ATTN_ATTENTION_DOCUMENT_BLOCKS_H

#include "attention/sequence.h"

/* All numbers of some documents are within low..high. */
struct attn_document_range {
    int64_t low, high;
};

/* Of `count` > 0 numbers side by side. */
struct attn_document_range attn_documents_range(const int64_t *documents, int64_t count);

/* Documents of rows `first` and on, and of keys `first` and on. */
const int64_t *attn_documents_of_rows(const struct attn_problem *problem,
                                      const struct attn_sequence *sequence, int64_t first);
const int64_t *attn_documents_of_keys(const struct attn_problem *problem,
                                      const struct attn_sequence *sequence, int64_t first);

/* How many blocks attn_document_blocks_fill fills: one for each ATTN_KEY_BLOCK keys of
 * key_documents [B][Lk], 0 where documents are not given. */
int64_t attn_document_blocks_count(const struct attn_problem *problem);

/* Where documents are given, fills blocks[B][⌈Lk / ATTN_KEY_BLOCK⌉], to be set as
 * problem->document_blocks. */
void attn_document_blocks_fill(const struct attn_problem *problem,
                               struct attn_document_range *blocks);

/* A range that holds the documents of keys first..first+count−1, count > 0: from the blocks where
 * the problem has them, and then wider than need be, else exact. */
struct attn_document_range attn_documents_near(const struct attn_problem *problem,
                                               const struct attn_sequence *sequence, int64_t first,
                                               int64_t count);

/* The span without the blocks at both ends that hold no document of rows first..first+rows−1, rows
 * > 0. Leaves it as it is where the problem has no blocks. */
struct attn_key_span attn_documents_narrow(const struct attn_problem *problem,
                                           const struct attn_sequence *sequence, int64_t first,
                                           int64_t rows, struct attn_key_span span);

#endif
