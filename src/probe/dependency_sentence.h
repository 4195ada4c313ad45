/* A model reads a sentence of a treebank, and the links of its heads are counted. */
#ifndef ATTN_PROBE_DEPENDENCY_SENTENCE_H
#define ATTN_PROBE_DEPENDENCY_SENTENCE_H

#include "model/text_model.h"
#include "probe/dependency_scores.h"

enum { NO_DEPENDENCY_WORD = -1 };

/* Which of a sentence's words, from 0, each token is a piece of: the first whose bytes it shares in
 * the text of treebank_add_text. Others, added tokens among them, are NO_DEPENDENCY_WORD.
 * word_of: [encoding->token_count]. */
void dependency_sentence_match(const struct treebank *treebank,
                               const struct treebank_sentence *sentence,
                               const struct encoding *encoding, int32_t *word_of);

/* Runs the model over a sentence, encoded, and counts what each head finds. Attention among words
 * is that of their pieces, summed over keys and averaged over queries; a word without a piece
 * neither finds nor is found. scores: of the same treebank, and of the model's layers and heads. */
bool dependency_sentence_add(struct dependency_scores *scores, const struct treebank *treebank,
                             const struct treebank_sentence *sentence, struct text_model *model,
                             const struct compute *compute, const struct encoding *encoding,
                             struct attn_error *error);

#endif
