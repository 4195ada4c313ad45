#include "text/pair_merges.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/pair_counts.h"

/* Places are numbered in 32 bits, and each may be in three lists of occurrences. */
enum { PIECE_LIMIT = 1 << 30, FEWEST_TIMES = 2 };
static const int32_t gone = -1; /* the id of a place that its left neighbour has taken in */

/* A place in a word: a piece, and its neighbours. */
struct place {
    int32_t id;
    uint32_t previous, next; /* PAIR_NONE at the word's ends */
    uint32_t word;
};

struct learner {
    struct place *places;
    const struct pair_word *words;
    struct pair_counts counts;
    struct text_table *pieces;
    const char *prefix;
    char *spelling; /* workspace */
    size_t spelling_room;
    struct pair_merges *merges;
};

bool pair_words_push(struct pair_words *words, int32_t piece)
{
    int32_t *pieces =
        array_grow(words->pieces, words->piece_count, &words->piece_capacity, sizeof *pieces);
    if (!pieces)
        return false;
    words->pieces = pieces;
    words->pieces[words->piece_count++] = piece;
    return true;
}

bool pair_words_end(struct pair_words *words, uint64_t times)
{
    struct pair_word *larger =
        array_grow(words->words, words->count, &words->capacity, sizeof *larger);
    if (!larger)
        return false;
    words->words = larger;
    words->words[words->count++] = (struct pair_word){words->piece_count, times};
    return true;
}

void pair_words_release(struct pair_words *words)
{
    free(words->pieces);
    free(words->words);
    memset(words, 0, sizeof *words);
}

void pair_merges_release(struct pair_merges *merges)
{
    free(merges->merges);
    memset(merges, 0, sizeof *merges);
}

/* Links the pieces of each word, and counts their pairs. */
static bool count_words(struct learner *learner, const struct pair_words *words)
{
    size_t size = words->piece_count ? words->piece_count : 1;
    learner->places =
        size > SIZE_MAX / sizeof *learner->places ? NULL : malloc(size * sizeof *learner->places);
    if (!learner->places)
        return false;
    uint32_t at = 0;
    for (uint32_t word = 0; word < words->count; word++)
        for (uint32_t begin = at; at < words->words[word].end; at++) {
            bool is_last = at + 1 == words->words[word].end;
            learner->places[at] = (struct place){words->pieces[at], at > begin ? at - 1 : PAIR_NONE,
                                                 is_last ? PAIR_NONE : at + 1, word};
            if (!is_last && !pair_counts_add(&learner->counts, words->pieces[at],
                                             words->pieces[at + 1], words->words[word].times, at))
                return false;
        }
    return pair_counts_settle(&learner->counts);
}

/* The piece of left and right together, new or there already. */
static bool name_merge(struct learner *learner, struct pair_merge merge, uint32_t *merged)
{
    size_t left_size, right_size, skipped = strlen(learner->prefix);
    text_table_get(learner->pieces, (uint32_t)merge.left, &left_size);
    const char *right = text_table_get(learner->pieces, (uint32_t)merge.right, &right_size);
    if (right_size < skipped || memcmp(right, learner->prefix, skipped) != 0)
        skipped = 0;
    size_t size = left_size + right_size - skipped;
    if (size > learner->spelling_room) {
        char *spelling = realloc(learner->spelling, 2 * size);
        if (!spelling)
            return false;
        learner->spelling = spelling;
        learner->spelling_room = 2 * size;
    }
    memcpy(learner->spelling, text_table_get(learner->pieces, (uint32_t)merge.left, &left_size),
           left_size);
    memcpy(learner->spelling + left_size, right + skipped, right_size - skipped);
    return text_table_add(learner->pieces, learner->spelling, size, 1, merged);
}

static bool is_at(const struct learner *learner, struct pair_merge merge, uint32_t at)
{
    const struct place *place = &learner->places[at];
    return place->id == merge.left && place->next != PAIR_NONE &&
           learner->places[place->next].id == merge.right;
}

/* The pair at this place becomes one piece; its pairs with the neighbours change. */
static bool merge_at(struct learner *learner, struct pair_merge merge, int32_t merged, uint32_t at)
{
    struct pair_counts *counts = &learner->counts;
    struct place *left = &learner->places[at], *right = &learner->places[left->next];
    uint64_t times = learner->words[left->word].times;
    if (left->previous != PAIR_NONE) {
        int32_t before = learner->places[left->previous].id;
        pair_counts_subtract(counts, before, merge.left, times);
        if (!pair_counts_add(counts, before, merged, times, left->previous))
            return false;
    }
    if (right->next != PAIR_NONE) {
        int32_t after = learner->places[right->next].id;
        pair_counts_subtract(counts, merge.right, after, times);
        if (!pair_counts_add(counts, merged, after, times, at))
            return false;
        learner->places[right->next].previous = at;
    }
    left->id = merged;
    left->next = right->next;
    right->id = gone;
    return true;
}

static bool apply(struct learner *learner, struct pair_merge merge, int32_t merged,
                  uint32_t occurrence)
{
    uint32_t at;
    while (pair_counts_next_place(&learner->counts, &occurrence, &at))
        if (is_at(learner, merge, at) && !merge_at(learner, merge, merged, at))
            return false;
    return pair_counts_settle(&learner->counts);
}

static bool record(struct pair_merges *merges, struct pair_merge merge)
{
    struct pair_merge *larger =
        array_grow(merges->merges, merges->count, &merges->capacity, sizeof merge);
    if (!larger)
        return false;
    merges->merges = larger;
    merges->merges[merges->count++] = merge;
    return true;
}

static bool learn(struct learner *learner, uint32_t size)
{
    struct pair_top top;
    while (learner->pieces->count < size && pair_counts_pop(&learner->counts, &top) &&
           top.count >= FEWEST_TIMES) {
        struct pair_merge merge = {top.left, top.right};
        uint32_t merged;
        if (!name_merge(learner, merge, &merged) || !record(learner->merges, merge) ||
            !apply(learner, merge, (int32_t)merged, top.occurrence))
            return false;
    }
    return true;
}

bool pair_merges_learn(const struct pair_words *words, struct text_table *pieces,
                       const char *prefix, uint32_t size, struct pair_merges *merges,
                       struct attn_error *error)
{
    if (words->piece_count > PIECE_LIMIT)
        return attn_error_set(error,
                              "the text's different words have %zu letters, expected at most %d",
                              words->piece_count, PIECE_LIMIT);
    struct learner learner = {
        .words = words->words, .pieces = pieces, .prefix = prefix, .merges = merges};
    bool done = count_words(&learner, words) && learn(&learner, size);
    free(learner.places);
    free(learner.spelling);
    pair_counts_release(&learner.counts);
    if (!done)
        pair_merges_release(merges);
    return done || attn_error_memory(error);
}
