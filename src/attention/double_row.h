/* One row of the f64 path: its sequence, its keys and their final scores, in double precision.
 * Plain C with a whole row of scores in memory; it serves forward, decode, weights, inspection and
 * backward alike, so that a score has the same bits in all of them. */
#ifndef ATTN_ATTENTION_DOUBLE_ROW_H
#define ATTN_ATTENTION_DOUBLE_ROW_H

#include "attention/scratch.h"
#include "attention/sequence.h"

struct attn_double_row {
    struct attn_sequence sequence; /* beyond all packed ones: one without keys */
    int64_t head, query;           /* query: position in the sequence */
    struct attn_key_span spans[2]; /* the keys that it may keep */

    double *q;      /* [d_qk] */
    double *output; /* [d_v], not yet divided by l */
    double *scores; /* [Lk], by position in the sequence; −inf is an excluded key. Filled within
                       the spans only */
    float *tile;    /* [ATTN_KEY_BLOCK], what a score callback sees */
    /* With dropout only. */
    double *factors; /* [Lk], alike: 0 or 1/(1 − rate) */
    float *kept;     /* [ATTN_KEY_BLOCK][ATTN_MAX_LANES], of which one lane is the row */
};

/* The row's memory: see scratch.h. */
void attn_double_row_take(struct attn_double_row *row, const struct attn_problem *problem,
                          struct attn_scratch *scratch);

/* Row `i` of batch `batch` and head `head` of q: finds its sequence and its keys. */
void attn_double_row_begin(struct attn_double_row *row, const struct attn_problem *problem,
                           int64_t batch, int64_t head, int64_t i);

/* Leaves of the spans what lies within keys begin..end−1. */
void attn_double_row_narrow(struct attn_double_row *row, int64_t begin, int64_t end);

/* The final scores of all keys of the spans: scale · q·k, soft cap, bias, ALiBi, callback,
 * exclusions. A callback gets them rounded to f32; those that it leaves as they are stay f64. */
void attn_double_row_score(struct attn_double_row *row, const struct attn_kernels *kernels,
                           const struct attn_problem *problem);

/* m and l of the scores, the sink among them: m = max_j s_j and l = Σ_j exp(s_j − m), in the order
 * in which the forward pass adds. */
void attn_double_row_sum(const struct attn_double_row *row, const struct attn_problem *problem,
                         double *m, double *l);

/* Fills row->factors within the spans; with dropout only. */
void attn_double_row_drop(struct attn_double_row *row, const struct attn_kernels *kernels,
                          const struct attn_problem *problem);

#endif
