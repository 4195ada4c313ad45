/* A model that tells the next token from those before it, for reading and writing text: GPT-2 (A.
 * Radford et al., 2019) and Llama (H. Touvron et al., 2023), the weights as the file stores them.
 */
#ifndef ATTN_MODEL_CAUSAL_MODEL_H
#define ATTN_MODEL_CAUSAL_MODEL_H

#include "model/model_observer.h"
#include "model/model_source.h"
#include "nn/cached_attention.h"

struct causal_settings {
    enum model_kind kind;
    int64_t vocabulary;
    int64_t layers, heads, key_heads, head_size;
    int64_t width;        /* of the sum that runs through the layers */
    int64_t inner;        /* of the feed-forward block */
    int64_t context;      /* positions */
    int64_t parameters;   /* numbers in all weights that a token meets, the head's once */
    int64_t weight_bytes; /* stored bytes of those; 0 where settings alone are read */
};

struct causal_model;

/* Settings alone, without weights. */
bool causal_model_read_settings(struct causal_settings *settings, const struct model_source *source,
                                struct attn_error *error);

/* The source must outlive the model. Weights stay in the file, mapped, as it stores them; in memory
 * are norms and biases, as f32, and the matrices of a Hugging Face GPT-2, which the file has
 * transposed, in their own type. A missing tensor, a wrong shape, a type that is not supported, a
 * tensor of a layer that has no place in the model, and settings that are not implemented (rope
 * scaling, sliding windows, soft caps, activations other than SiLU in Llama, and any setting of a
 * Llama that is not known) are refused by name. */
bool causal_model_open(struct causal_model **model, const struct model_source *source,
                       struct attn_error *error);
void causal_model_close(struct causal_model *model); /* NULL is allowed */
const struct causal_settings *causal_model_get_settings(const struct causal_model *model);

/* Texts that are being read or written: the cache, and memory for activations. */
struct causal_session;

struct causal_session_settings {
    int64_t sequences; /* texts side by side, ≥ 1 */
    int64_t capacity;  /* tokens of each, 1..context */
    int64_t chunk;     /* tokens that are computed at once at most; 0: 512 */
    /* With CACHE_F32 logits are the same however a text is cut, within rounding (1e-5 where they
     * are a few units). The other types move them by at most, of the largest logit, f16 0.002, bf16
     * 0.015, int8 0.04 in the tests' small models, and f16 0.001, bf16 0.01, int8 0.03 in the
     * default generator. */
    enum cache_type cache;
    attn_precision precision;
};

/* Fails where the cache does not fit the machine's memory. model and compute must outlive it. All
 * memory is asked for here: causal_session_read asks for none, but what attention keeps. */
bool causal_session_create(struct causal_session **session, const struct causal_model *model,
                           const struct compute *compute,
                           const struct causal_session_settings *settings,
                           struct attn_error *error);
void causal_session_destroy(struct causal_session *session); /* NULL is allowed */

/* What it was created with, and for. */
const struct causal_session_settings *
causal_session_get_settings(const struct causal_session *session);
const struct causal_model *causal_session_get_model(const struct causal_session *session);

/* Tokens that a sequence holds; and forgets all behind the first `length` (≤ what it holds). */
int64_t causal_session_length(const struct causal_session *session, int64_t sequence);
void causal_session_truncate(struct causal_session *session, int64_t sequence, int64_t length);

enum causal_logits {
    CAUSAL_NONE, /* read only */
    CAUSAL_LAST, /* logits[sequences][vocabulary]: of each sequence's last token */
    CAUSAL_ALL   /* logits[tokens][vocabulary] */
};

/* The next tokens of some sequences, one behind the other. */
struct causal_input {
    int64_t sequences;
    const int64_t *slots;  /* [sequences]: which ones, rising; NULL: 0, 1, 2 … */
    const int64_t *starts; /* [sequences + 1], from 0: each has at least one token */
    const int32_t *ids;    /* [starts[sequences]] */
    enum causal_logits want;
};

/* Reads them. Before anything is computed it refuses ids out of range and what does not fit: "the
 * text has 9 tokens, the model has 8 positions", "the cache holds N tokens and is full". logits
 * that are not finite are refused. After a failure the sequences hold what they held before. The
 * observer may be NULL; with one, all tokens of a call must fit one chunk. */
bool causal_session_read(struct causal_session *session, const struct causal_input *input,
                         const struct model_observer *observer, float *logits,
                         struct attn_error *error);

#endif
