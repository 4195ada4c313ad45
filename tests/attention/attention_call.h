/* A right call of attn_forward, attn_decode and attn_weights, for a test to make one thing wrong
 * in. */
#ifndef ATTN_TESTS_ATTENTION_CALL_H
#define ATTN_TESTS_ATTENTION_CALL_H

#include "harness/attention_problem.h"

struct attention_call {
    attn_context *context;
    struct attention_problem problem;
    attn_tensor o, stats, weights; /* f32 */
    const int64_t *begin;          /* of the part of the weights; NULL for their first element */
};

/* A context and a dense problem with packed outputs for all of it, nothing called yet. The call is
 * not copied by assignment, as the problem is not. */
void attention_call_begin(struct attention_call *call, const struct attention_sizes *sizes);
void attention_call_end(struct attention_call *call);

attn_status attention_call_forward(struct attention_call *call);
attn_status attention_call_weights(struct attention_call *call);
attn_status attention_call_decode(struct attention_call *call);

/* A failed check unless the call gave this status and a message of one line that holds both parts.
 */
void attention_call_check_message(const struct attention_call *call, attn_status status,
                                  attn_status expected, const char *names, const char *says);

/* One way to be wrong: what `change` does, and what all functions must say to it. Those that touch
 * what attn_weights does not read concern attn_forward and attn_decode only. */
struct attention_fault {
    const char *what;
    void (*change)(struct attention_call *call);
    attn_status status;
    const char *names, *says; /* the message holds these two */
    bool forward_only;
};

/* Begins a right call, makes it wrong and checks that each function refuses it and writes nothing.
 */
void attention_check_fault(void (*begin)(struct attention_call *call),
                           const struct attention_fault *fault);

#endif
