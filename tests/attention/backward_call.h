/* A right call of attn_backward, for a test to make one thing wrong in. */
#ifndef ATTN_TESTS_BACKWARD_CALL_H
#define ATTN_TESTS_BACKWARD_CALL_H

#include "harness/attention_problem.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, QUERIES = 5, KEYS = 7, D_QK = 3, D_V = 6 };

extern const struct attention_sizes backward_call_sizes; /* those above */

struct backward_call {
    attn_context *context;
    struct attention_problem problem;
    attn_tensor o, stats, d_o;
    attn_tensor d_q, d_k, d_v, d_bias, d_sinks;
    attn_gradients gradients; /* all that the problem has */
    float sinks[HEADS];
};

/* A problem of at most HEADS heads with sinks, and with backward_call_sizes a bias [1, H, Lq, Lk];
 * after its attn_forward. Not copied by assignment, but for the tensors. */
void backward_call_begin(struct backward_call *call, attn_context *context,
                         const struct attention_sizes *sizes);

attn_status backward_call_run(struct backward_call *call);

/* Nothing has been written to dQ, dK, dV and the sinks' gradient. */
void backward_call_check_unwritten(const struct backward_call *call);

/* A packed f32 tensor in guarded memory; and one of another's shape. */
attn_tensor backward_call_packed(int64_t batch, int64_t heads, int64_t length, int64_t dim);
attn_tensor backward_call_unwritten_like(const attn_tensor *tensor);

#endif
