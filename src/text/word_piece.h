/* WordPiece (M. Schuster, K. Nakajima, "Japanese and Korean voice search" (2012)) as BERT uses it:
 * a word is cut into the longest pieces from its left. */
#ifndef ATTN_TEXT_WORD_PIECE_H
#define ATTN_TEXT_WORD_PIECE_H

#include "text/vocabulary.h"

struct word_piece {
    struct vocabulary vocabulary;
    char *prefix; /* of a piece that goes on within a word: "##" */
    size_t prefix_length;
    int32_t unknown_id;
    uint64_t longest_word; /* characters; a word of more is unknown */
};

void word_piece_release(struct word_piece *model);

/* Whether a word, valid UTF-8, is within the limit. */
bool word_piece_takes(const struct word_piece *model, const char *word, size_t size);

/* The piece at word[begin], begin < size, and where it ends. VOCABULARY_NO_ID when no piece fits:
 * then the whole word is unknown. */
int32_t word_piece_next(const struct word_piece *model, const char *word, size_t size, size_t begin,
                        size_t *end);

#endif
