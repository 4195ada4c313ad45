/* Byte-pair encoding (R. Sennrich, B. Haddow, A. Birch, "Neural machine translation of rare words
 * with subword units" (2016)) of bytes: a word begins as its bytes, and of all pairs of neighbours
 * the one that was learned first is merged, the leftmost of several, until none is known. */
#ifndef ATTN_TEXT_BYTE_PAIR_H
#define ATTN_TEXT_BYTE_PAIR_H

#include "base/buffer.h"
#include "text/byte_level.h"
#include "text/vocabulary.h"

struct byte_pair_merge {
    int32_t left, right; /* ids of the pair */
    int32_t merged;      /* and of what it becomes */
};

struct byte_pair {
    struct vocabulary vocabulary;       /* pieces spelled by byte_level.h */
    int32_t byte_ids[BYTE_LEVEL_BYTES]; /* VOCABULARY_NO_ID for a byte that has no piece */
    int32_t unknown_id; /* of such a byte; VOCABULARY_NO_ID: it is left out, as in the reference */
    bool fuse_unknown;  /* one piece for all of a run of them */
    bool whole_words;   /* a word that is a piece is not split, whatever merges say */
    struct byte_pair_merge *merges; /* [merge_count], by rank */
    uint32_t merge_count;
    uint32_t *slots; /* [slot_mask + 1], a power of two: rank + 1 of a pair, 0 where it is free */
    uint32_t slot_mask;
};

/* Room for so many merges in a model that has its vocabulary; finds the ids of bytes. */
bool byte_pair_create_merges(struct byte_pair *model, size_t merges, struct attn_error *error);

/* The next merge, of two spellings. A pair that is there already gets the later rank, as in the
 * reference. Refuses spellings that the vocabulary has not; `file` names the file in messages. */
bool byte_pair_add_merge(struct byte_pair *model, const char *left, size_t left_length,
                         const char *right, size_t right_length, const char *file,
                         struct attn_error *error);

void byte_pair_release(struct byte_pair *model);

/* A piece of a word. */
struct byte_pair_piece {
    int32_t id;
    uint32_t begin, end;     /* bytes of the word */
    uint32_t previous, next; /* while pairs are merged */
};

/* Workspace; start from zeros, may be used for many words in turn. */
struct byte_pair_word {
    struct byte_pair_piece *pieces; /* [count], left to right */
    size_t count, capacity;
    uint64_t *queue; /* a heap of rank · 2³² + place, the smallest first */
    size_t queued, queue_capacity;
    struct attn_buffer spelling; /* of the word, where whole words are looked for */
    size_t dropped_count;        /* bytes of the word that are left out */
    unsigned char first_dropped; /* where dropped_count > 0 */
};

/* Replaces `split` by the pieces of word[0..size), any bytes, size < UINT32_MAX. Time is
 * size · log size. False when there is no memory. */
bool byte_pair_split(const struct byte_pair *model, const char *word, size_t size,
                     struct byte_pair_word *split);
void byte_pair_word_release(struct byte_pair_word *split);

#endif
