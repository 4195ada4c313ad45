/* How often pairs of pieces stand in words, and where; the most frequent one at any time. */
#ifndef ATTN_TEXT_PAIR_COUNTS_H
#define ATTN_TEXT_PAIR_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const uint32_t PAIR_NONE = UINT32_MAX;

struct pair_count {
    int32_t left, right;
    uint64_t count;
    uint32_t first, last; /* occurrences in the order of their coming; PAIR_NONE for none */
    bool is_raised;       /* since pair_counts_settle was called last */
};

/* A place where a pair was when it was added. */
struct pair_occurrence {
    uint32_t place, next;
};

/* What the pair's count was when it was queued. */
struct pair_candidate {
    uint64_t count;
    uint32_t pair;
};

/* Start from zeros. */
struct pair_counts {
    struct pair_count *pairs; /* [count] */
    size_t count, capacity;
    uint32_t *slots; /* [slot_mask + 1], a power of two: index + 1 of a pair, 0 where it is free */
    uint32_t slot_mask;
    struct pair_occurrence *occurrences;
    size_t occurrence_count, occurrence_capacity;
    struct pair_candidate *queue; /* a heap: the most frequent first, then the smaller pair */
    size_t queued, queue_capacity;
    uint32_t *raised; /* pairs that are to be queued */
    size_t raised_count, raised_capacity;
};

/* The pair stands at `place` `times` times more. False when there is no memory, or there are more
 * than 2³⁰ pairs. */
bool pair_counts_add(struct pair_counts *counts, int32_t left, int32_t right, uint64_t times,
                     uint32_t place);

/* The pair, which was added, stands somewhere `times` times less. */
void pair_counts_subtract(struct pair_counts *counts, int32_t left, int32_t right, uint64_t times);

/* Queues the pairs that were added to. */
bool pair_counts_settle(struct pair_counts *counts);

struct pair_top {
    int32_t left, right;
    uint64_t count;
    uint32_t occurrence; /* the first, for pair_counts_next_place */
};

/* The most frequent pair that has places; it gives them up. False when there is none. Its count
 * stays, as in the reference: should the pair come up again, it goes first soon. */
bool pair_counts_pop(struct pair_counts *counts, struct pair_top *top);

/* The next place of a pair, which may have gone since it was added. False at the end. */
bool pair_counts_next_place(const struct pair_counts *counts, uint32_t *occurrence,
                            uint32_t *place);

void pair_counts_release(struct pair_counts *counts);

#endif
