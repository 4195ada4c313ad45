/* A model that learns to tell words from their neighbours: GPT-2 (A. Radford et al., 2019), which
 * tells the next one, or BERT with its masked-word head, which tells those that were hidden. One
 * door for both: made new or opened from a Hugging Face directory, taught, and written as one. */
#ifndef ATTN_MODEL_LANGUAGE_MODEL_H
#define ATTN_MODEL_LANGUAGE_MODEL_H

#include "model/parameters.h"
#include "nn/cross_entropy.h"
#include "nn/self_attention.h"

enum language_model_kind { LANGUAGE_MODEL_GPT2, LANGUAGE_MODEL_BERT };

struct language_model_settings {
    enum language_model_kind kind;
    int64_t vocabulary;
    int64_t layers, heads, width; /* heads divides width */
    int64_t inner;                /* of the feed-forward block; 0: 4·width */
    int64_t context;              /* positions */
    float dropout;                /* of embeddings, attention weights and both sums of a layer */
};

struct language_model;

/* A new model: matrices and embeddings normal with deviation 0.02 (projections into the residual
 * sum of GPT-2: 0.02/√(2·layers)), biases 0, gains 1; the same numbers for the same seed. */
bool language_model_create(struct language_model **model,
                           const struct language_model_settings *settings, uint64_t seed,
                           struct attn_error *error);

/* A checkpoint in a directory: GPT2LMHeadModel (with and without "transformer.", the head tied), or
 * BertForMaskedLM (a BERT without the head gets a new one, from `seed`). Errors name file and
 * tensor. */
bool language_model_open(struct language_model **model, const char *directory, uint64_t seed,
                         struct attn_error *error);

/* The same for a BERT that shall tell words as it is: one without the head is refused. */
bool language_model_open_with_head(struct language_model **model, const char *directory,
                                   struct attn_error *error);
void language_model_close(struct language_model *model); /* NULL is allowed */

const struct language_model_settings *
language_model_get_settings(const struct language_model *model);
void language_model_set_dropout(struct language_model *model, float dropout);
struct parameters *language_model_parameters(struct language_model *model);

/* config.json and model.safetensors into a directory that is there, each whole or not at all. Names
 * and shapes are those of Transformers' GPT2LMHeadModel and BertForMaskedLM. The end token's id
 * goes into GPT-2's config (bos_token_id, eos_token_id), −1 for none; BERT's pad token, −1 for
 * none. */
bool language_model_write(const struct language_model *model, const char *directory,
                          int32_t special_id, struct attn_error *error);

/* Sequences, one behind the other, and what they should have told. */
struct language_batch {
    struct packed_batch batch;
    const int32_t *ids;    /* [tokens] */
    const int32_t *labels; /* [tokens]: the id that this place should tell, or
                              CROSS_ENTROPY_IGNORE */
};

/* What a pass of learning needs to know beside the batch. */
struct language_model_step {
    /* Dropout: one seed a step, and where the batch begins in the step's whole batch, in sequences
     * and tokens, so that parts draw what the whole would. */
    uint64_t dropout_seed;
    int64_t first_sequence, first_token;
    float gradient_scale;    /* of the sum of losses: 1/(labels that count in the whole batch) */
    enum gradient_mode mode; /* SET: the first part of a step clears what was there */
    /* NULL, or told that gradients[begin..begin+count−1] of the parameters are final for this pass;
     * every one is told once. For sums over processes beside the rest of the pass. */
    void (*ready)(void *user, int64_t begin, int64_t count);
    void *user;
    /* NULL, or where the seconds spent in attention, linear layers and the rest are added. */
    struct language_model_times *times;
};

struct language_model_times {
    double attention, linear, rest;
};

/* Forward and backward: adds the batch's losses to *sum, and gradient_scale times the gradient of
 * their sum to the parameters' gradients. Ids and labels out of range are refused by place and
 * number before anything is computed; a sequence longer than the context too. Activations are kept
 * in the model between calls. */
bool language_model_learn(struct language_model *model, const struct compute *compute,
                          const struct language_batch *batch,
                          const struct language_model_step *step, struct cross_entropy *sum,
                          struct attn_error *error);

/* The loss alone, without dropout or gradients: for held-out text. */
bool language_model_evaluate(struct language_model *model, const struct compute *compute,
                             const struct language_batch *batch, struct cross_entropy *sum,
                             struct attn_error *error);

/* Places of one sequence, and what a model that sees all of it needs to tell what stands there. */
struct language_places {
    int64_t tokens;
    const int32_t *ids;    /* [tokens] */
    const int32_t *types;  /* [tokens] of BERT's pairs, or NULL for zeros */
    int64_t count;         /* ≥ 0 */
    const int64_t *places; /* [count], rising, 0..tokens−1 */
};

/* logits[count][vocabulary]. What is out of range is refused before anything is computed, logits
 * that are not finite when they are. */
bool language_model_tell(struct language_model *model, const struct compute *compute,
                         const struct language_places *sequence, float *logits,
                         struct attn_error *error);

/* The same from hidden[count][width], the last layer's output for those places, wherever it was
 * computed: all that stands between it and the logits. */
bool language_model_tell_hidden(struct language_model *model, const struct compute *compute,
                                const float *hidden, int64_t count, float *logits,
                                struct attn_error *error);

/* logits[vocabulary] of the last token of one sequence: what comes next. */
bool language_model_next(struct language_model *model, const struct compute *compute,
                         const int32_t *ids, int64_t tokens, float *logits,
                         struct attn_error *error);

#endif
