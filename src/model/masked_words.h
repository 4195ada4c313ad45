/* Words for the places that a text leaves open: a BERT with its masked-word head. */
#ifndef ATTN_MODEL_MASKED_WORDS_H
#define ATTN_MODEL_MASKED_WORDS_H

#include "base/error.h"
#include "nn/compute.h"
#include "text/tokenizer.h"

struct masked_words;

/* Whether the checkpoint of a BERT in a directory has that head. */
bool masked_words_are_there(const char *directory, bool *there, struct attn_error *error);

/* A BertForMaskedLM in a directory. A model of another kind is refused by its name, and a BERT
 * without that head: "FILE: the model has no masked-word head: …". */
bool masked_words_open(struct masked_words **model, const char *directory,
                       struct attn_error *error);
void masked_words_close(struct masked_words *model); /* NULL is allowed */
int64_t masked_words_vocabulary(const struct masked_words *model);

struct masked_word {
    int32_t id;
    double probability;
};

/* For each of places[count] (tokens of the encoding, rising) the `top` likeliest ids, likeliest
 * first, of equal ones the smaller id: words[count][top], 1 ≤ top ≤ vocabulary. Types of a pair are
 * read. Ids, types, places and lengths out of range are refused before anything is computed. A
 * model is used by one thread at a time. */
bool masked_words_tell(struct masked_words *model, const struct compute *compute,
                       const struct encoding *encoding, const int64_t *places, int64_t count,
                       int64_t top, struct masked_word *words, struct attn_error *error);

/* The logits themselves, [count][vocabulary]. */
bool masked_words_logits(struct masked_words *model, const struct compute *compute,
                         const struct encoding *encoding, const int64_t *places, int64_t count,
                         float *logits, struct attn_error *error);

/* The logits[count][vocabulary] that the head makes of hidden[count][width], last hidden states of
 * the same BERT that were computed elsewhere: of a text that is looked at, or with changes. Logits
 * that are not finite are refused. */
bool masked_words_head(struct masked_words *model, const struct compute *compute,
                       const float *hidden, int64_t count, float *logits, struct attn_error *error);

#endif
