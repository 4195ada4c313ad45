/* Pieces and their ids: one block of spellings, one hash table over them. */
#ifndef ATTN_TEXT_VOCABULARY_H
#define ATTN_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    VOCABULARY_ID_LIMIT = 1 << 24, /* ids are below; memory grows with the largest one */
    VOCABULARY_NO_ID = -1
};

struct vocabulary_slot {
    uint32_t hash;
    int32_t id; /* VOCABULARY_NO_ID where the slot is free */
};

struct vocabulary {
    char *spellings;  /* each with a NUL behind it */
    uint32_t *begins; /* [size]: where an id's spelling begins; 0 for an id that is not taken */
    int32_t size;     /* one more than the largest id */
    size_t used, bytes /* of spellings */;
    struct vocabulary_slot *slots; /* [slot_mask + 1], a power of two, at least half of it free */
    uint32_t slot_mask;
    size_t longest; /* bytes of the longest piece that can be found */
};

/* Room for `pieces` pieces of `bytes` bytes in all (without NULs) with ids below `size`, which is
 * at most VOCABULARY_ID_LIMIT. */
bool vocabulary_create(struct vocabulary *vocabulary, int32_t size, size_t pieces, size_t bytes,
                       struct attn_error *error);
void vocabulary_release(struct vocabulary *vocabulary);

enum vocabulary_entry {
    VOCABULARY_FOUND, /* vocabulary_find and vocabulary_longest see it */
    VOCABULARY_NAMED /* it only has its spelling: a token that is added to the model's vocabulary */
};

/* Within the room that was asked for; 0 ≤ id < size; the piece has no NUL. False, changing nothing,
 * when the id is taken or a piece of this spelling can be found. */
bool vocabulary_add(struct vocabulary *vocabulary, int32_t id, const char *piece, size_t length,
                    enum vocabulary_entry entry);

/* VOCABULARY_NO_ID when it is not there. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *piece, size_t length);

/* The piece that is `left` and then `right`. */
int32_t vocabulary_find_joined(const struct vocabulary *vocabulary, const char *left,
                               size_t left_length, const char *right, size_t right_length);

/* The longest piece that is `prefix` and then a beginning of `text`, which is not empty; *length
 * counts the bytes of text that it takes, at least 1. VOCABULARY_NO_ID when there is none. */
int32_t vocabulary_longest(const struct vocabulary *vocabulary, const char *prefix,
                           size_t prefix_length, const char *text, size_t text_length,
                           size_t *length);

/* NULL for an id that is not taken. */
const char *vocabulary_spelling(const struct vocabulary *vocabulary, int32_t id);

#endif
