/* What if a head were not there, or one word did not see another: a model run as it is and changed,
 * and what the change does to what it tells. */
#ifndef ATTN_PROBE_WHAT_IF_H
#define ATTN_PROBE_WHAT_IF_H

#include "model/masked_words.h"
#include "probe/look.h"

/* Queries that do not see keys: all pairs of one and the other. */
struct what_if_cut {
    const bool *queries, *keys; /* [tokens] */
};

struct what_if {
    const struct look_head *ablated; /* heads whose output is 0; head LOOK_MEAN: all of a layer */
    size_t ablated_count;
    const struct what_if_cut *cuts;
    size_t cut_count;
    const struct look_head *where; /* heads in which the cuts are made; none: all of all layers */
    size_t where_count;
};

/* The changes, layer by layer, for model_observer and look_settings. A cut is made before the
 * softmax: its weights are 0, and those that are left of the row sum to 1. An ablated head keeps
 * its weights; what it blends is 0.
 *
 * Refuses heads that the model has not, by name, and a cut without a pair that the model would
 * otherwise have seen: words of a GPT-2 and a Llama see none behind them. What `what_if` points to
 * is not read later. Tokens behind the encoding's last are cut from nothing. */
struct what_if_change;
bool what_if_change_create(struct what_if_change **change, const struct what_if *what_if,
                           const struct text_model_settings *model, const struct encoding *encoding,
                           struct attn_error *error);
void what_if_change_destroy(struct what_if_change *change); /* NULL is allowed */

/* NULL where a layer is not changed. May be called by any thread. */
const struct attention_change *what_if_change_of(void *change, int64_t layer);

/* One word that the model may tell. */
struct what_if_word {
    int32_t id;
    double before, after; /* probabilities among the whole vocabulary */
};

enum { WHAT_IF_NEXT = -1 };

struct what_if_place {
    int64_t token;              /* that the words stand for: a [MASK], or WHAT_IF_NEXT */
    struct what_if_word *words; /* [word_count], by the larger of before and after, then by id */
    size_t word_count;
    double divergence; /* Σ before·ln(before/after) over the whole vocabulary, in nats */
};

struct what_if_effects {
    struct what_if_place *places; /* the next word of a causal model; the masks of a BERT with that
                                     head */
    size_t place_count;
    /* A BERT's: 1 − cos of the embeddings (means of the last hidden states) before and after, and
     * of each token's last hidden state. */
    bool has_embedding;
    double embedding_distance;
    double *token_distances; /* [tokens] */
};

/* The places of a text that a BERT shall find words for. */
struct what_if_masks {
    struct masked_words *model; /* the same BERT with its masked-word head */
    const int64_t *places;      /* [count], tokens of the encoding */
    size_t count;
};

/* `masks` may be NULL: none; it is not read of a causal model. `top` words a place, or as many as
 * there are. Where nothing is changed, nothing differs by a bit. Release with
 * what_if_effects_release; on failure nothing is held. */
bool what_if_run(struct text_model *model, const struct what_if_masks *masks,
                 const struct compute *compute, const struct encoding *encoding,
                 const struct what_if *what_if, size_t top, struct what_if_effects *effects,
                 struct attn_error *error);
void what_if_effects_release(struct what_if_effects *effects);

#endif
