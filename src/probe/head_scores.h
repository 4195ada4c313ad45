/* What each head of a model does: numbers a head over a text, or over many. */
#ifndef ATTN_PROBE_HEAD_SCORES_H
#define ATTN_PROBE_HEAD_SCORES_H

#include "model/text_model.h"

/* Means over the rows (tokens that look, added ones too) of all texts, of the weights P_ij; a score
 * over rows of a certain kind alone is NaN where there are none. */
struct head_scores {
    double entropy;  /* −Σ_j P_ij·ln P_ij, nats */
    double distance; /* Σ_j P_ij·|i − j|, tokens */
    double self;     /* P_ii */
    double previous; /* P_i,i−1, over rows that have one */
    double next;     /* P_i,i+1, over rows that have one (0 in a causal model) */
    double first;    /* P_i0 */
    /* To the added tokens behind the first place ([SEP]), over the rows of texts that have some. */
    double separators;
    /* The largest α_j = mean of P_ij over the rows that see key j, among the keys that at least
     * half of the text's rows see (α: X. Gu et al., "When Attention Sink Emerges in Language
     * Models" (2024), section 3; there a head is a sink where α > 0.3), averaged over texts. */
    double sink;
    /* Σ of P_ij over the earlier places j of the same token, over rows that have one (K. Wang et
     * al., "Interpretability in the Wild" (2022), section 3). */
    double duplicate;
    /* Σ of P_ij over the tokens before i that stand behind earlier places of i's token, over rows
     * that have one (C. Olsson et al., "In-context Learning and Induction Heads" (2022)). */
    double induction;
};

struct head_survey {
    int64_t layers, heads;
    struct head_scores *scores; /* [layers][heads] */
    int64_t texts, rows;
};

struct head_collector;

/* Texts are added one by one; memory is O(tokens) of the longest beside the scores. */
bool head_collector_create(struct head_collector **collector,
                           const struct text_model_settings *settings, struct attn_error *error);
void head_collector_destroy(struct head_collector *collector); /* NULL is allowed */

/* Runs the model over a text. After a failure the collector is of no further use. */
bool head_collector_add(struct head_collector *collector, struct text_model *model,
                        const struct compute *compute, const struct encoding *encoding,
                        struct attn_error *error);

/* Refuses where no text was added. Release with head_survey_release. */
bool head_collector_finish(const struct head_collector *collector, struct head_survey *survey,
                           struct attn_error *error);
void head_survey_release(struct head_survey *survey);

#endif
