/* The characters of words, as the first pieces of a WordPiece vocabulary. */
#ifndef ATTN_TEXT_ALPHABET_H
#define ATTN_TEXT_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/text_table.h"

enum { ALPHABET_NO_ID = -1, ALPHABET_PREFIX_LIMIT = 8 };

struct letter {
    uint32_t code_point;
    uint64_t times; /* in all words */
    bool is_inner;  /* somewhere it is not the first of its word */
    int32_t id;     /* of its piece; ALPHABET_NO_ID before its piece is made */
    int32_t inner;  /* and of its piece within words; ALPHABET_NO_ID where it has none */
};

/* Start from zeros. */
struct alphabet {
    struct letter *letters; /* [count], ascending by code point */
    size_t count;
};

/* The letters of all words, valid UTF-8. Where they need more than `room` pieces (one a letter, and
 * one more if it is inner) the most frequent ones stay, of equals the smaller code points. Adds
 * their pieces to `pieces`: letters, then inner letters behind `prefix` (of at most
 * ALPHABET_PREFIX_LIMIT bytes), by code point. False when there is no memory. */
bool alphabet_create(struct alphabet *alphabet, const struct text_table *words, size_t room,
                     const char *prefix, struct text_table *pieces);
void alphabet_release(struct alphabet *alphabet);

/* The id of a letter's piece, or ALPHABET_NO_ID. */
int32_t alphabet_find(const struct alphabet *alphabet, uint32_t code_point, bool is_inner);

#endif
