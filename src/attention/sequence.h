/* One sequence of a problem: a batch of the tensors, or one of several packed along the length. All
 * positions below are its own, from 0 on. */
#ifndef ATTN_ATTENTION_SEQUENCE_H
#define ATTN_ATTENTION_SEQUENCE_H

#include "attention/problem.h"

struct attn_sequence {
    int64_t index;       /* of key_lengths, prefix_lengths and the block table */
    int64_t batch;       /* of q, k, v, o, stats, keep and bias */
    int64_t query_begin; /* row of q, o, stats, keep and bias where query 0 stands */
    int64_t key_begin;   /* row of k and v (without pages), column of keep and bias */
    int64_t queries;
    int64_t keys;   /* those that key_lengths leaves */
    int64_t offset; /* query i stands at key position i + offset */
    int64_t prefix; /* keys below it are kept whatever causal and window say; ≤ keys */
};

/* index 0..sequences−1; where sequences are packed also `sequences`: the rows behind the last one,
 * which have no key. */
struct attn_sequence attn_sequence_at(const struct attn_problem *problem, int64_t index);

/* The last of starts[0..count−1], which begin with 0 and do not fall, at or before `place` ≥ 0: of
 * parts that follow each other, the one that holds it. count ≥ 1. */
int64_t attn_last_start(const int64_t *starts, int64_t count, int64_t place);

/* The index for attn_sequence_at of the sequence that holds row `row` of batch `batch` of q. */
int64_t attn_sequence_of_row(const struct attn_problem *problem, int64_t batch, int64_t row);

/* Keys begin..end−1; begin = end where there is none. */
struct attn_key_span {
    int64_t begin, end;
};

static inline bool attn_span_is_empty(struct attn_key_span span)
{
    return span.begin >= span.end;
}

/* The smallest span that holds both; an empty one holds nothing. */
struct attn_key_span attn_span_join(struct attn_key_span a, struct attn_key_span b);

/* The keys that some of rows first..first+rows−1 of a head may keep by lengths, causality, window,
 * prefix, the key_range callback and blocks of documents: those of two spans, prefix.end ≤
 * rest.begin. */
struct attn_key_spans {
    struct attn_key_span prefix, rest;
};
struct attn_key_spans attn_keys_of_rows(const struct attn_problem *problem,
                                        const struct attn_sequence *sequence, int64_t head,
                                        int64_t first, int64_t rows);

/* The smallest span that holds the part of both within begin..end−1, its begin moved down to a
 * multiple of ATTN_KEY_STEP. */
struct attn_key_span attn_keys_within(const struct attn_key_spans *spans, int64_t begin,
                                      int64_t end);

#endif
