/* Merges learned from words: of all pairs of neighbours the most frequent one becomes a piece,
 * again and again (R. Sennrich, B. Haddow, A. Birch, "Neural machine translation of rare words with
 * subword units" (2016), algorithm 1).
 *
 * The pairs and their order are those of the reference trainer (Hugging Face's `tokenizers`): a
 * pair counts at each place, overlapping ones too; of equal counts the smaller pair of ids goes
 * first; a merge whose spelling is there already makes no new piece. */
#ifndef ATTN_TEXT_PAIR_MERGES_H
#define ATTN_TEXT_PAIR_MERGES_H

#include "base/error.h"
#include "text/text_table.h"

struct pair_word {
    size_t end;     /* where it ends in the pieces of all words */
    uint64_t times; /* how often it stands in the text */
};

/* Words as pieces. Start from zeros. */
struct pair_words {
    int32_t *pieces; /* [piece_count]: ids, word after word */
    size_t piece_count, piece_capacity;
    struct pair_word *words; /* [count] */
    size_t count, capacity;
};

/* A piece more of the word that is being made, and its end. Each false when there is no memory. */
bool pair_words_push(struct pair_words *words, int32_t piece);
bool pair_words_end(struct pair_words *words, uint64_t times);
void pair_words_release(struct pair_words *words);

struct pair_merge {
    int32_t left, right;
};

struct pair_merges {
    struct pair_merge *merges; /* [count], the first learned first */
    size_t count, capacity;
};

/* Learns until `pieces`, whose numbers are the ids in `words`, has `size` entries or no pair stands
 * twice. `prefix` is left out of the right one's spelling where it begins so: "##", or "". On
 * failure nothing is held in `merges`. */
bool pair_merges_learn(const struct pair_words *words, struct text_table *pieces,
                       const char *prefix, uint32_t size, struct pair_merges *merges,
                       struct attn_error *error);
void pair_merges_release(struct pair_merges *merges);

#endif
