/* The attention of one layer where gradients are asked for: forward with what the way back needs,
 * and back. */
#ifndef ATTN_MODEL_TEXT_GRADIENT_ATTENTION_H
#define ATTN_MODEL_TEXT_GRADIENT_ATTENTION_H

#include "attention/scratch.h"
#include "model/text_gradient.h"

/* One text. Arrays are of one layer at a time. */
struct text_gradient_attention {
    const struct compute *compute;
    int64_t tokens, heads, key_heads, d;
    enum self_attention_sight sight;

    float *projected;               /* [tokens][heads + 2·key_heads][d]: q | k | v */
    float *blended;                 /* [tokens][heads][d]: O */
    float *stats;                   /* [heads][tokens][2] */
    float *d_projected, *d_blended; /* like what they are the gradients of */
};

/* Numbers that a token has in `projected`. */
static inline int64_t text_gradient_projected(const struct text_gradient_attention *attention)
{
    return (attention->heads + 2 * attention->key_heads) * attention->d;
}

/* The arrays, for the shape that is set. */
void text_gradient_attention_lay_out(struct text_gradient_attention *attention,
                                     struct attn_scratch *memory);

/* `blended` and `stats` from `projected`. */
bool text_gradient_attention_forward(const struct text_gradient_attention *attention,
                                     struct attn_error *error);

/* Shows `layer` to the observer, once `d_blended` is known. Numbers that are not finite are
 * refused. */
bool text_gradient_attention_show(const struct text_gradient_attention *attention, int64_t layer,
                                  const struct gradient_observer *observer,
                                  struct attn_error *error);

/* `d_projected` from `d_blended`. */
bool text_gradient_attention_backward(const struct text_gradient_attention *attention,
                                      struct attn_error *error);

#endif
