/* What attn_explain asks of attn_inspect and attn_forward_inspect. */
#ifndef ATTN_ATTENTION_INSPECT_H
#define ATTN_ATTENTION_INSPECT_H

#include "attention/forward.h"
#include "attention/key_sums.h"

/* The parts of a call and where they lie in one workspace: what the forward pass shares, the
 * statistics where the caller wants none, what the sums share; and the threads, for which the two
 * passes follow each other. */
struct attn_inspect_plan {
    struct attn_forward_run rows; /* used where wants_rows */
    struct attn_key_sums sums;    /* used where the inspection wants key_sums */
    bool wants_rows;
    int64_t rows_shared, stats_bytes; /* 0 where there is none */
    int64_t shared_bytes, bytes_a_thread;
};

/* Of attn_inspect where `inspects_only`, else of attn_forward_inspect. False where sizes leave 64
 * bits. */
bool attn_inspect_plan_make(struct attn_inspect_plan *plan, const struct attn_context *context,
                            struct attn_problem *problem, const struct attn_inspected *inspected,
                            bool inspects_only);

#endif
