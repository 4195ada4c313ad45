/* Attention of one text whose queries, keys and values lie side by side, and its way back; grouped
 * where there are fewer key heads than heads. Without projections, for layers whose weights
 * self_attention.h does not know, and without a cache. */
#ifndef ATTN_NN_PROJECTED_ATTENTION_H
#define ATTN_NN_PROJECTED_ATTENTION_H

#include "attention/scratch.h"
#include "nn/self_attention.h"

struct projected_attention {
    const struct compute *compute;
    int64_t tokens, heads, key_heads, d;
    enum self_attention_sight sight;

    float *projected;               /* [tokens][heads + 2·key_heads][d]: q | k | v */
    float *blended;                 /* [tokens][heads][d]: O */
    float *stats;                   /* [heads][tokens][2] */
    float *d_projected, *d_blended; /* like what they are the gradients of */
};

/* Numbers that a token has in `projected`. */
static inline int64_t projected_attention_width(const struct projected_attention *attention)
{
    return (attention->heads + 2 * attention->key_heads) * attention->d;
}

/* The arrays, for the shape that is set. */
void projected_attention_lay_out(struct projected_attention *attention,
                                 struct attn_scratch *memory);

/* `blended` and `stats` from `projected`. */
bool projected_attention_forward(const struct projected_attention *attention,
                                 struct attn_error *error);

/* `d_projected` from `d_blended`, behind the forward pass. */
bool projected_attention_backward(const struct projected_attention *attention,
                                  struct attn_error *error);

/* What the two give to libattn. */
struct projected_attention_call {
    attn_params params;
    attn_tensor q, k, v, o, stats, d_o; /* [1, heads | key heads, tokens, d | 2] */
};
struct projected_attention_call
projected_attention_call_of(const struct projected_attention *attention);

#endif
