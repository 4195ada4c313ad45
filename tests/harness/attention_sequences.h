/* Packed sequences, prefixes and documents of a problem, and one of its sequences alone. */
#ifndef ATTN_TESTS_HARNESS_ATTENTION_SEQUENCES_H
#define ATTN_TESTS_HARNESS_ATTENTION_SEQUENCES_H

#include "harness/attention_problem.h"

/* Packs `sequences` sequences of these many queries and keys into a problem of batch 1; their sums
 * are at most Lq and Lk. */
void attention_add_sequences(struct attention_problem *problem, int64_t sequences,
                             const int64_t *query_lengths, const int64_t *key_lengths);

/* Documents of 1..`longest` neighbours, numbered from 0, over queries and keys of each batch: the
 * n-th query and key of a batch are of one document as far as both go. */
void attention_add_documents(struct attention_problem *problem, int64_t longest, uint64_t seed);

/* One sequence (a batch, or one of those packed) as a problem of its own over parts of the tensors,
 * whose results must be those of its rows. Not with pages, and not with callbacks, which would be
 * told another sequence. */
void attention_one_sequence(const struct attention_problem *problem, int64_t index,
                            struct attention_problem *alone);

/* The same for one query head of a problem with one sequence, with the key head that it reads. */
void attention_one_head(const struct attention_problem *problem, int64_t head,
                        struct attention_problem *alone);

/* The part of `whole` that a problem made of it gives: rows [batch, head, first row on] of Lq, and
 * `keys` columns of weights from first_key on. Copies. */
struct attention_part {
    int64_t batch, head, query, key;       /* where it begins */
    int64_t batches, heads, queries, keys; /* how many there are */
};
void attention_result_part(const struct attention_problem *problem,
                           const struct attention_result *whole, const struct attention_part *part,
                           struct attention_result *result);

#endif
