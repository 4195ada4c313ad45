/* One chunk of tokens on its way through the layers, and the steps that the kinds share. */
#ifndef ATTN_MODEL_CAUSAL_PASS_H
#define ATTN_MODEL_CAUSAL_PASS_H

#include "model/causal_parts.h"

/* Memory is that of the session, for as many tokens as a chunk has at most; what belongs to the
 * chunk is set for each. */
struct causal_pass {
    const struct causal_model *model;
    const struct compute *compute;
    struct key_value_cache *cache;
    struct matrix_workspace *workspace;
    attn_precision precision;

    float *x;               /* [tokens][width]: the sum that runs through the layers */
    float *normed;          /* [tokens][width] */
    float *projected;       /* [tokens][heads + 2·key_heads][head_size]: q | k | v */
    float *blended;         /* [tokens][heads][head_size] */
    float *gate, *up;       /* [tokens][inner]; no gate in GPT-2 */
    float *cosines, *sines; /* [tokens][head_size / 2]; Llama */
    float *stats;           /* cached_attention_stats(…) */

    const struct model_observer *observer; /* or NULL */
    struct cached_batch batch;
    int64_t tokens;
};

/* Numbers that a token has in `projected`. */
int64_t causal_projected_width(const struct causal_settings *settings);

/* q | k | v from `normed`. */
void causal_project(struct causal_pass *pass, const struct causal_layer *layer);

/* `blended` from `projected`, whose keys and values layer n's cache takes. */
bool causal_attend(struct causal_pass *pass, int64_t n, struct attn_error *error);

/* x += y·Wᵀ + b, y[tokens][W.in]. */
void causal_add(struct causal_pass *pass, const struct causal_linear *linear, const float *y);

#endif
