/* What the files of causal_gradient.h share: one text on its way through the layers and back. */
#ifndef ATTN_MODEL_CAUSAL_GRADIENT_PARTS_H
#define ATTN_MODEL_CAUSAL_GRADIENT_PARTS_H

#include "model/causal_pass.h"
#include "model/text_gradient.h"
#include "nn/gradient.h"
#include "nn/projected_attention.h"

/* The numbers of one layer at a time, but for `read`. In `pass` x is the sum in the middle of the
 * layer, between its halves; gate and up are what the activation reads; projected and blended are
 * those of `attention`. */
struct causal_gradient {
    struct causal_pass pass;
    struct projected_attention attention;
    const struct causal_gradient_kind *kind;
    const struct gradient_observer *observer;

    float *read;     /* [layers][tokens][width]: x of each layer */
    float *dx;       /* [tokens][width]: gradient of x behind the layer, in its middle, before it */
    float *d_normed; /* [tokens][width] */
    float *d_gate, *d_up; /* [tokens][inner]; no gate in GPT-2. d_up is what `down` reads, too, and
                             its gradient */
    float *logits;        /* [vocabulary], or their gradient */
    float *unpacked;      /* matrix_backward's */
};

/* What differs between the kinds. */
struct causal_gradient_kind {
    bool turns; /* queries and keys, by their positions */
    /* gate and up from `normed`. */
    void (*inner)(const struct causal_gradient *gradient, const struct causal_layer *layer);
    /* d_up from these: what `down` reads. */
    void (*activate)(const struct causal_gradient *gradient);
    /* d_normed from d_up, the gradient of what `down` has read. */
    void (*inner_backward)(const struct causal_gradient *gradient,
                           const struct causal_layer *layer);
    /* dx[rows][width] = or += the gradient of the norm's x, from dy, which dx may be. */
    bool (*norm_backward)(const struct causal_gradient *gradient, const struct causal_norm *norm,
                          int64_t rows, const float *x, const float *dy, float *dx,
                          enum gradient_mode mode, struct attn_error *error);
};
extern const struct causal_gradient_kind causal_gradient_gpt2, causal_gradient_llama;

/* d_normed = or += dy·W, dy[tokens][dy_stride]. */
void causal_gradient_through(const struct causal_gradient *gradient,
                             const struct weight_matrix *weight, const float *dy, int64_t dy_stride,
                             enum gradient_mode mode);

#endif
