/* Which word looks at which: the weights that a model really used for a text, by word, and measures
 * that are made of them. */
#ifndef ATTN_PROBE_LOOK_H
#define ATTN_PROBE_LOOK_H

#include "model/text_model.h" /* and what an encoding is */

enum { LOOK_MEAN = -1 };

/* One head, the mean over a layer's heads (head LOOK_MEAN), or of all (both LOOK_MEAN); from 0. */
struct look_head {
    int64_t layer, head;
};

/* What stands in a row and column. */
enum look_unit {
    LOOK_WORDS, /* the pieces of a word merged: summed over keys, averaged over queries */
    LOOK_PIECES
};

/* What a number says of row i and key j. Of all but the weights, rows are divided by their sums
 * over all tokens, added ones and the word itself included: they are shares (a row of zeros stays
 * one).
 *
 *   LOOK_WEIGHTS   P_ij, the weight
 *   LOOK_NORM      ‖Σ_h P_ij·(v_j·Wo)‖, of one head, or of the sum over a layer's heads: what the
 *                  key adds to the row, the value with its bias (G. Kobayashi et al., "Attention is
 *                  Not Only a Weight" (2020), equation 5). One norm a key piece, norms of a word's
 *                  pieces added, rows of a query word averaged, then the share. All layers: the
 *                  mean of their shares
 *
 *   LOOK_ROLLOUT   of layer n: Ā_n·…·Ā_0, Ā = ½·(mean over heads of P) + ½·I (S. Abnar, W. Zuidema,
 *                  "Quantifying Attention Flow in Transformers" (2020), section 3); all layers: of
 *                  the last one. Has no single heads
 *
 *   LOOK_GRADIENT  (P∘∂y/∂P)⁺, of one head, or the mean over heads (H. Chefer et al., "Generic
 *                  Attention-model Explainability" (2021), equation 5); y as in
 *                  model/text_gradient.h. All layers: the mean of the sums, then the share
 */
enum look_measure { LOOK_WEIGHTS, LOOK_NORM, LOOK_ROLLOUT, LOOK_GRADIENT };

struct look_settings {
    const struct look_head *heads; /* each gives one matrix; out of range is refused by name */
    size_t head_count;
    enum look_unit unit;
    bool special; /* keep the rows and columns of tokens that the template added */
    enum look_measure measure;
    size_t links; /* 0: whole rows; else of each row only the strongest, at most so many */
    bool vectors; /* keep queries, keys and values of all heads too */
    /* What is changed in the layers while they compute: model_observer's; NULL for nothing. */
    const struct attention_change *(*change)(void *user, int64_t layer);
    void *change_user;
};

struct look_link {
    uint32_t column;
    float weight;
};

/* What the heads computed with: queries and keys as they were multiplied (turned, where the model
 * turns them). */
struct look_vectors {
    int64_t layers, heads, key_heads, d, tokens;
    float scale;
    float *queries;       /* [layers][heads][tokens][d] */
    float *keys, *values; /* [layers][key_heads][tokens][d] */
};

struct look {
    size_t units;         /* rows and columns */
    size_t *first_token;  /* [units]: the first token of each, */
    size_t *token_counts; /* [units]: and how many it has, one behind the other */
    int32_t *word;        /* [units]: index into encoding.words, TOKEN_NO_WORD for an added token */
    /* One of the two: all of it, rows are queries; or each row's strongest, strongest first, of
     * equal ones the lower column first, the places that are left of weight 0. */
    float *weights;          /* [head_count][units][units] */
    struct look_link *links; /* [head_count][units][links_a_row] */
    size_t links_a_row;
    float *row_sums; /* [head_count][units]: of whole rows, where only links are kept; else NULL */
    struct look_vectors vectors; /* all zero where they are not asked for */
};

/* Runs the model over one encoding and collects. Where added tokens are left out, rows keep their
 * weights and sum to less than 1. Memory: what struct look holds, some rows of all tokens, for a
 * mean over all layers [units][units] in double, for a rollout twice [tokens][tokens], for a
 * gradient what text_gradient_run takes; what the machine has not is refused before anything is
 * computed. Release with look_release; on failure nothing is held. */
bool look_run(struct text_model *model, const struct compute *compute,
              const struct encoding *encoding, const struct look_settings *settings,
              struct look *look, struct attn_error *error);
void look_release(struct look *look);

/* What stands in the rows and columns, without numbers: units and what is known of each. Release
 * with look_release; on failure nothing is held. */
bool look_name_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     struct look *look, struct attn_error *error);

/* Divides each row of all matrices by its sum: over what is kept, a row sums to 1. A row of zeros
 * stays one. */
void look_renormalize(struct look *look, size_t head_count);

/* The same of weights[rows][columns]. */
void look_renormalize_rows(float *weights, size_t rows, size_t columns);

#endif
