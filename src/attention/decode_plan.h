/* How a decode call is cut into items, and what memory they have.
 *
 * The keys of a sequence fall into chunks of a fixed size, and the results of its chunks are merged
 * in order. An item is all chunks of one key head for a group of rows; where those are too few for
 * the threads it is one chunk of them, and merging waits until all are done. The operations are
 * the same ones in the same order, and so are the bits.
 *
 * The rows of a key head are the queries of its query heads: row r is query r mod queries of head
 * r / queries of the group. */
#ifndef ATTN_ATTENTION_DECODE_PLAN_H
#define ATTN_ATTENTION_DECODE_PLAN_H

#include "attention/scratch.h"
#include "attention/sequence.h"
#include "kernel/decode_kernels.h"

enum {
    ATTN_DECODE_CHUNK = ATTN_DECODE_BLOCK, /* keys whose results are merged as one */
    ATTN_DECODE_ROWS = 64                  /* of an item at most: a fixed amount of memory */
};

struct attn_decode_plan {
    int64_t items;
    int64_t pass_queries; /* rows that share one pass over a row of K or V */
    int64_t chunk_keys;
    int64_t shared_bytes, bytes_a_thread;

    int64_t group;      /* query heads a key head */
    int64_t row_groups; /* of one key head of a sequence: parts of at most ATTN_DECODE_ROWS rows */
    int64_t rows;       /* of such a part at most */
    int64_t parts;      /* sequences · key heads · row_groups */
    int64_t chunks;     /* items that a part is shared by; 1: it is one item */
};

/* False where the sizes leave 64 bits. */
bool attn_decode_plan_make(struct attn_decode_plan *plan, const struct attn_context *context,
                           const struct attn_problem *problem);

/* ATTN_ERROR_SHAPE where a sequence has more than ATTN_DECODE_MAX_QUERIES queries. */
attn_status attn_decode_check(const struct attn_problem *problem, struct attn_error *error);

/* The state of some rows: the running maximum, the running sum, and the output before its division,
 * in the kernels' order. */
struct attn_decode_state {
    float *m, *l;  /* [rows] */
    float *output; /* [rows][attn_decode_width(d_v)] */
};
void attn_decode_state_take(struct attn_decode_state *state, int64_t rows, int64_t d_v,
                            struct attn_scratch *scratch);

/* What is shared: ranges of documents, and the states of all chunks that wait to be merged, item
 * after item (rows of plan->rows). */
struct attn_decode_shared {
    struct attn_document_range *documents;
    struct attn_decode_state chunks;
};
void attn_decode_shared_take(struct attn_decode_shared *shared, const struct attn_decode_plan *plan,
                             const struct attn_problem *problem, struct attn_scratch *scratch);

/* Rows of K or V of one block, brought together where they do not lie in one run. */
struct attn_decode_rows {
    const void **table; /* [ATTN_DECODE_BLOCK], with a block table */
    float *scales;      /* [ATTN_DECODE_BLOCK], i8 with a block table or of elements apart */
    char *copy;         /* [ATTN_DECODE_BLOCK][dim], where elements of a row lie apart */
};

/* One thread's memory. */
struct attn_decode_scratch {
    struct attn_decode_state total, chunk;
    float *queries; /* [rows][attn_decode_width(d_qk)] */
    float *scores;  /* [ATTN_DECODE_BLOCK][ATTN_DECODE_QUERIES] */
    float *row;     /* [max(d_qk, d_v)], for queries and outputs of other types than f32 */
    char *narrow;   /* [d_v], the same */
    float *bias;    /* [ATTN_KEY_BLOCK] */
    struct attn_key_spans *spans; /* [rows] */
    struct attn_decode_rows keys, values;
};
/* Takes it with its parts; it is the first thing taken. NULL while bytes are counted only. */
const struct attn_decode_scratch *attn_decode_scratch_take(const struct attn_decode_plan *plan,
                                                           const struct attn_problem *problem,
                                                           struct attn_scratch *scratch);

#endif
