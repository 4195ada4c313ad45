/* One chunk of tokens on its way through the layers, and the steps that the kinds share. */
#ifndef ATTN_MODEL_CAUSAL_PASS_H
#define ATTN_MODEL_CAUSAL_PASS_H

#include "model/causal_parts.h"
#include "nn/layer_norm.h"
#include "nn/rms_norm.h"

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

/* Columns of the widest matrix of a layer, for matrix_workspace_create. */
int64_t causal_widest(const struct causal_settings *settings);

/* A norm as nn knows it. */
struct layer_norm causal_layer_norm(const struct causal_pass *pass, const struct causal_norm *norm);
struct rms_norm causal_rms_norm(const struct causal_pass *pass, const struct causal_norm *norm);

/* q | k | v from `normed`. */
void causal_project(struct causal_pass *pass, const struct causal_layer *layer);

/* `blended` from `projected`, whose keys and values layer n's cache takes. */
bool causal_attend(struct causal_pass *pass, int64_t n, struct attn_error *error);

/* rope_turn, or rope_turn_back of gradients, of the queries and keys in `projected`, which is one
 * of [tokens][heads + 2·key_heads][head_size]; Llama. */
typedef void rope_function(const struct rope *rope, const float *cosines, const float *sines,
                           int64_t tokens, int64_t heads, int64_t stride, float *x);
void causal_turn(const struct causal_pass *pass, rope_function *turning, float *projected);

/* gate and up from `normed`; Llama. */
void causal_gate_and_up(const struct causal_pass *pass, const struct causal_layer *layer);

/* x += y·Wᵀ + b, y[tokens][W.in]. */
void causal_add(struct causal_pass *pass, const struct causal_linear *linear, const float *y);

/* logits[rows][vocabulary] of x[rows][width] behind the last layer, through `normed`. Logits that
 * are not finite are refused. */
bool causal_tell(const struct causal_pass *pass, int64_t rows, const float *x, float *logits,
                 struct attn_error *error);

#endif
