/* The forward pass over a resolved problem, and what is inspected on the way. */
#ifndef ATTN_ATTENTION_FORWARD_H
#define ATTN_ATTENTION_FORWARD_H

#include "attention/forward_plan.h"

struct attn_forward_run {
    struct attn_problem *problem; /* with batches, heads and queries; not f64 */
    const struct attn_kernels *kernels;
    struct attn_forward_plan plan;
    /* Nothing but the inspection is wanted: o is not written, v not looked at (d_v = 0), and
     * problem->stats is an input. */
    bool inspects_only;
    char *workspace; /* of the threads */
};

/* Plans it; `inspected` may be NULL. False where sizes leave 64 bits. */
bool attn_forward_run_plan(struct attn_forward_run *run, const struct attn_context *context,
                           struct attn_problem *problem, const struct attn_inspected *inspected);

/* Does it, with shared_bytes of the plan at `shared`, and bytes_a_thread for each thread at
 * `threads`. */
void attn_forward_run_execute(struct attn_forward_run *run, const struct attn_context *context,
                              void *shared, void *threads);

#endif
