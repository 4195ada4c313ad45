/* A right call of attn_forward and attn_weights, for a test to make one thing wrong in. */
#ifndef ATTN_TESTS_ATTENTION_CALL_H
#define ATTN_TESTS_ATTENTION_CALL_H

#include "harness/attention_problem.h"

struct attention_call {
    attn_context *context;
    struct attention_problem problem;
    attn_tensor o, stats, weights;
    const int64_t *begin; /* of the part of the weights; NULL for their first element */
};

/* A context and a dense problem with packed outputs for all of it, nothing called yet. The call is
 * not copied by assignment, as the problem is not. */
void attention_call_begin(struct attention_call *call, const struct attention_sizes *sizes);
void attention_call_end(struct attention_call *call);

attn_status attention_call_forward(struct attention_call *call);
attn_status attention_call_weights(struct attention_call *call);

#endif
