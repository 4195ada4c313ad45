/* Multi-head self-attention over a packed batch of sequences: X → Q, K, V → attention → O·Woᵀ. */
#ifndef ATTN_NN_SELF_ATTENTION_H
#define ATTN_NN_SELF_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "nn/linear.h"

struct self_attention {
    struct linear query, key, value; /* [heads·d][width] each */
    struct linear output;            /* [width][heads·d] */
    int64_t heads;
};

/* Sequences of any lengths, one behind the other without padding. */
struct packed_batch {
    int64_t sequences;     /* ≥ 1 */
    const int64_t *starts; /* [sequences + 1]: each one's first token, from 0 on, and their sum */
};

static inline int64_t packed_batch_tokens(const struct packed_batch *batch)
{
    return batch->starts[batch->sequences];
}

static inline int64_t packed_batch_length(const struct packed_batch *batch, int64_t sequence)
{
    return batch->starts[sequence + 1] - batch->starts[sequence];
}

/* What attention computed with, for all sequences. The views are valid during the call only. */
struct attention_record {
    const attn_params *params;
    attn_tensor q, k, stats; /* [1, heads, tokens, d | d | 2] */
};

/* Called after attention where set; false ends the forward pass with `error`. */
struct attention_observer {
    bool (*observe)(void *user, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error);
    void *user;
};

/* y[tokens][width] += attention of x[tokens][width], without the output projection's bias. y may be
 * x: the residual sum x + attention(x).
 * workspace: self_attention_workspace(...) floats. observer may be NULL. */
bool self_attention_forward(const struct compute *compute, const struct self_attention *layer,
                            const struct packed_batch *batch, const float *x, float *y,
                            float *workspace, const struct attention_observer *observer,
                            struct attn_error *error);

/* Floats that self_attention_forward needs for a batch of `tokens` tokens. */
int64_t self_attention_workspace(const struct self_attention *layer, int64_t tokens);

#endif
