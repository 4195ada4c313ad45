/* One pass of a batch through a language model: the steps that GPT-2 and BERT are written in, with
 * the time that each takes, dropout where learning has it, and gradients where they belong. */
#ifndef ATTN_MODEL_LANGUAGE_PASS_H
#define ATTN_MODEL_LANGUAGE_PASS_H

#include "model/language_parts.h"

struct language_pass {
    const struct compute *compute;
    const struct language_model *model;
    struct language_memory *memory; /* the model's */
    const struct packed_batch *batch;
    int64_t tokens;
    const struct language_model_step *step; /* NULL: forward only, without dropout */
    const int32_t *types;                   /* [tokens], BERT, or NULL for zeros; forward only */

    struct language_model_times times;
    double lap; /* when the part that is being timed began; 0: nothing is timed */
};

/* Where dropout stands in the network: within a layer, or behind the embeddings (layer −1). */
enum pass_place { PASS_EMBEDDINGS, PASS_WEIGHTS, PASS_ATTENTION, PASS_FEED_FORWARD };

/* Every function of the kinds runs between these two. end adds the times to the step's. */
void pass_begin(struct language_pass *pass);
void pass_end(struct language_pass *pass);

/* Adds the time since the last lap to *seconds, one of pass->times. */
void pass_lap(struct language_pass *pass, double *seconds);

static inline bool pass_learns(const struct language_pass *pass)
{
    return pass->step != NULL;
}

/* y = linear(x); rows are packed. */
void pass_linear(struct language_pass *pass, const struct linear *linear, int64_t rows,
                 const float *x, float *y);

/* Adds to the gradients of the layer's parameters; dx is written or added to. */
void pass_linear_backward(struct language_pass *pass, const struct linear *linear, int64_t rows,
                          const float *x, const float *dy, float *dx, enum gradient_mode dx_mode);

void pass_norm(struct language_pass *pass, const struct layer_norm *norm, int64_t rows,
               const float *x, float *y);
bool pass_norm_backward(struct language_pass *pass, const struct layer_norm *norm, int64_t rows,
                        const float *x, const float *dy, float *dx, enum gradient_mode dx_mode,
                        struct attn_error *error);

/* y = attention of layer n, with the bias of its output projection. */
bool pass_attention(struct language_pass *pass, int64_t n, const float *x, float *y,
                    struct attn_error *error);
bool pass_attention_backward(struct language_pass *pass, int64_t n, const float *x, const float *dy,
                             float *dx, enum gradient_mode dx_mode, struct attn_error *error);

/* y = the feed-forward block of layer n: W₂·activation(W₁·x). The activation's output is computed
 * again on the way back. */
void pass_feed_forward(struct language_pass *pass, int64_t n, const float *x, float *y);
void pass_feed_forward_backward(struct language_pass *pass, int64_t n, const float *x,
                                const float *dy, float *dx, enum gradient_mode dx_mode);

/* x∘mask in place; backward: the gradient behind it, dy itself or in `masked`. */
void pass_dropout(struct language_pass *pass, int64_t layer, enum pass_place place, float *x);
const float *pass_dropout_backward(struct language_pass *pass, int64_t layer, enum pass_place place,
                                   const float *dy, float *masked);

/* sum = x + y, [tokens][width]. */
void pass_add(struct language_pass *pass, const float *x, const float *y, float *sum);

/* Of a table of `rows` rows whose rows `ids` stand in the sum dx. A table that also is the head's
 * has the head's part of its gradient already. */
void pass_table_backward(struct language_pass *pass, const float *table, int64_t rows,
                         const int32_t *ids, const float *dx, bool is_head);

/* The gradients of parameters begin..begin+count−1 are final. */
void pass_ready(struct language_pass *pass, int64_t begin, int64_t count);

#endif
