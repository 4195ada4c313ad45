/* The first half of the reference: which keys a query keeps, and its scores in double precision. */
#ifndef ATTN_TESTS_HARNESS_REFERENCE_SCORES_H
#define ATTN_TESTS_HARNESS_REFERENCE_SCORES_H

#include <stdbool.h>

#include "attn.h"

/* Lk: the axis of keys of keep, bias and weights; with a block table that of a whole table's row.
 */
int64_t reference_keys(const attn_params *params, const attn_tensor *k);

/* A sequence's place in the tensors. Positions count from its begin. */
struct reference_sequence {
    int64_t index; /* of key_lengths, prefix_lengths and the block table */
    int64_t batch;
    int64_t query_begin, key_begin; /* rows of q, and columns of keep, bias and weights */
    int64_t queries, keys;
    int64_t offset;                      /* query i stands at key position i + offset */
    int64_t tensor_queries, tensor_keys; /* Lq and Lk */
};

/* How many there are, batches or packed sequences, and each of them. */
int64_t reference_sequences(const attn_params *params, int64_t batch);
struct reference_sequence reference_sequence_at(const attn_params *params, int64_t index,
                                                int64_t queries, int64_t keys);

/* The sequence of row i of batch b's queries; index −1 where there is none. */
struct reference_sequence reference_sequence_of(const attn_params *params, int64_t b, int64_t i,
                                                int64_t queries, int64_t keys);

/* Whether lengths, causal, window, prefix, documents, keep, bias and key_range leave key j to query
 * i, which count the tensors' Lq rows and Lk columns. (A score of −inf excludes too.) */
bool reference_keeps(const attn_params *params, int64_t b, int64_t h, int64_t i, int64_t j,
                     int64_t queries, int64_t keys);

/* One element of k or v as it counts: key j of a sequence, wherever its page is, times its scale.
 */
double reference_element(const attn_params *params, const attn_tensor *tensor,
                         const attn_tensor *scales, const struct reference_sequence *sequence,
                         int64_t key_head, int64_t j, int64_t c);

/* One query: its place, its scores, and how large the terms of each were. */
struct reference_row {
    struct reference_sequence sequence; /* index −1: the row belongs to none */
    int64_t head, query;                /* a position in the sequence */
    double *score;                      /* [Lk]; −inf is an excluded key */
    double *magnitude;                  /* [Lk] */
    float *tile;                        /* [Lk]: scratch for change_scores */
};

/* Fills score and magnitude. */
void reference_score_row(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         struct reference_row *row);

#endif
