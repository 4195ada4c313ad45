/* Calls of attn_inspect and attn_forward_inspect, and their results. */
#ifndef ATTN_TESTS_ATTENTION_INSPECT_CALL_H
#define ATTN_TESTS_ATTENTION_INSPECT_CALL_H

#include "harness/attention_problem.h"

/* What is asked for. */
struct inspect_wants {
    int64_t top; /* 0: none */
    bool entropy, maximum, key_sums;
    int64_t query_begin, query_end;
};

/* Everything, with this many weights of a row. */
struct inspect_wants inspect_everything(int64_t top);

/* Row-major copies as f64, which hold each number that is written; NULL where not asked for. */
struct inspect_result {
    double *top_weights, *top_keys; /* [B, H, Lq, top] */
    double *entropy, *maximum;      /* [B, H, Lq] */
    double *key_sums;               /* [B, H, Lk] */
    size_t rows, sums;
    int64_t top;
    /* Of attn_forward_inspect; NULL of attn_inspect. */
    double *o, *stats;
    size_t outputs;
};

/* Into outputs pre-filled with NaN, in the problem's output layout; a status other than success is
 * a failed check. attn_inspect takes the statistics of attn_forward. */
void inspect_solve(attn_context *context, const struct attention_problem *problem,
                   const struct inspect_wants *wants, struct inspect_result *result);
void inspect_solve_forward(attn_context *context, const struct attention_problem *problem,
                           const struct inspect_wants *wants, struct inspect_result *result);

/* Whether the problem can tell key_sums: not with packed sequences in pages. */
bool inspect_has_sums(const struct attention_problem *problem);

/* The same numbers, NaN for NaN, wherever both have them. */
void inspect_check_same(const struct inspect_result *actual, const struct inspect_result *expected);

#endif
