/* Multi-head self-attention over a packed batch of sequences: X → Q, K, V → attention → O·Woᵀ. */
#ifndef ATTN_NN_SELF_ATTENTION_H
#define ATTN_NN_SELF_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "nn/linear.h"

/* Which tokens of its sequence a token sees. */
enum self_attention_sight {
    SELF_ATTENTION_ALL,   /* all: BERT */
    SELF_ATTENTION_CAUSAL /* itself and those before it: GPT */
};

struct self_attention {
    struct linear query, key, value; /* width to heads·d each; parts of one matrix or three */
    struct linear output;            /* heads·d to width */
    int64_t heads;
    enum self_attention_sight sight;
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

/* The projection behind attention, without its bias: y[rows][width] = blended[rows][heads·d]·Woᵀ.
 * What a head adds to the sum that runs through the layers is the product of its part alone, with
 * zeros in place of the other heads. */
struct attention_output {
    int64_t width;
    void (*project)(const void *user, const struct compute *compute, int64_t rows,
                    const float *blended, float *y);
    const void *user;
};

/* What attention computed with, for all sequences. The views are valid during the call only. */
struct attention_record {
    const attn_params *params;
    attn_tensor q, k, v, stats; /* [1, heads, tokens, d | d | d | 2] */
    struct attention_output output;
};

/* What is changed in a layer's attention before it is computed: "what if". A row's weights are
 * made of the scores that are not excluded. Heads that are off keep their weights. Over a cache
 * queries count from a call's first new token. */
struct attention_change {
    attn_score_callback *change_scores; /* see attn_params; NULL: none */
    void *user;
    const bool *heads_off; /* [heads] or NULL: what these blend is 0 */
};

/* Called after attention where set; false ends the forward pass with `error`. */
struct attention_observer {
    bool (*observe)(void *user, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error);
    void *user;
    const struct attention_change *change; /* or NULL */
};

/* Sets to 0 what the heads that are off have blended: blended[tokens][heads·d]. change may be NULL.
 */
void attention_change_blended(const struct attention_change *change, int64_t tokens, int64_t heads,
                              int64_t d, float *blended);

/* y[tokens][width] += attention of x[tokens][width], without the output projection's bias. y may be
 * x: the residual sum x + attention(x).
 * workspace: self_attention_workspace(...) floats. observer may be NULL. */
bool self_attention_forward(const struct compute *compute, const struct self_attention *layer,
                            const struct packed_batch *batch, const float *x, float *y,
                            float *workspace, const struct attention_observer *observer,
                            struct attn_error *error);

/* Floats that self_attention_forward needs for a batch of `tokens` tokens. */
int64_t self_attention_workspace(const struct self_attention *layer, int64_t tokens);

/* Dropout of the attention weights while learning; see attn_params. */
struct attention_dropout {
    float rate; /* 0: none */
    uint64_t seed;
    int64_t first_sequence; /* of sequence 0, in the whole batch */
};

/* The forward pass of learning: as self_attention_forward, but y is written, with the output
 * projection's bias, and is not x; `saved`, self_attention_workspace(...) floats, keeps for the
 * backward pass q, k, v, the blended values and the row statistics. dropout may be NULL. */
bool self_attention_learn(const struct compute *compute, const struct self_attention *layer,
                          const struct packed_batch *batch, const struct attention_dropout *dropout,
                          const float *x, float *y, float *saved, struct attn_error *error);

struct self_attention_gradient {
    struct linear_gradient query, key, value, output;
};

/* From dy[tokens][width] the gradients of the four projections and dx[tokens][width], written or
 * added to. dx may be NULL, for one that is not wanted, or dy: with GRADIENT_ADD the gradient of
 * the residual sum x + attention(x). x, dropout and saved are those of the forward pass. workspace:
 * self_attention_backward_workspace(...) floats. What a failed call leaves in gradients is not
 * stated. The same numbers for any number of threads, with the same CBLAS.
 *
 * Weights of query, key and value that are parts of one matrix (rows, or with LINEAR_IN_OUT
 * columns, in this order, biases too) take one product instead of three, if their gradients lie
 * alike. */
bool self_attention_backward(const struct compute *compute, const struct self_attention *layer,
                             const struct packed_batch *batch,
                             const struct attention_dropout *dropout, const float *x,
                             const float *saved, const float *dy, float *dx,
                             enum gradient_mode dx_mode,
                             const struct self_attention_gradient *gradient, float *workspace,
                             struct attn_error *error);
int64_t self_attention_backward_workspace(const struct self_attention *layer, int64_t tokens);

#endif
