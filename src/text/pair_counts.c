#include "text/pair_counts.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/pair_hash.h"

enum { FIRST_SLOTS = 512, PAIR_LIMIT = 1 << 30 };

/* The slot of a pair, or the free one where it would stand. */
static uint32_t *find_slot(const struct pair_counts *counts, int32_t left, int32_t right)
{
    for (uint32_t at = pair_hash(left, right) & counts->slot_mask;;
         at = (at + 1) & counts->slot_mask) {
        uint32_t *slot = &counts->slots[at];
        if (*slot == 0)
            return slot;
        const struct pair_count *pair = &counts->pairs[*slot - 1];
        if (pair->left == left && pair->right == right)
            return slot;
    }
}

/* Slots for twice as many pairs. */
static bool grow_slots(struct pair_counts *counts)
{
    size_t size = counts->slots ? 2 * ((size_t)counts->slot_mask + 1) : FIRST_SLOTS;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots)
        return false;
    free(counts->slots);
    counts->slots = slots;
    counts->slot_mask = (uint32_t)(size - 1);
    for (size_t i = 0; i < counts->count; i++)
        *find_slot(counts, counts->pairs[i].left, counts->pairs[i].right) = (uint32_t)i + 1;
    return true;
}

/* The pair's record, new or there already; NULL when there is no memory. */
static struct pair_count *find_or_add(struct pair_counts *counts, int32_t left, int32_t right)
{
    size_t slots = counts->slots ? (size_t)counts->slot_mask + 1 : 0;
    if (2 * counts->count >= slots && (counts->count >= PAIR_LIMIT || !grow_slots(counts)))
        return NULL;
    uint32_t *slot = find_slot(counts, left, right);
    if (*slot == 0) {
        struct pair_count *pairs =
            array_grow(counts->pairs, counts->count, &counts->capacity, sizeof *pairs);
        if (!pairs)
            return NULL;
        counts->pairs = pairs;
        counts->pairs[counts->count] =
            (struct pair_count){left, right, 0, PAIR_NONE, PAIR_NONE, false};
        *slot = (uint32_t)++counts->count;
    }
    return &counts->pairs[*slot - 1];
}

static bool add_occurrence(struct pair_counts *counts, struct pair_count *pair, uint32_t place)
{
    struct pair_occurrence *occurrences =
        array_grow(counts->occurrences, counts->occurrence_count, &counts->occurrence_capacity,
                   sizeof *occurrences);
    if (!occurrences)
        return false;
    counts->occurrences = occurrences;
    uint32_t index = (uint32_t)counts->occurrence_count++;
    counts->occurrences[index] = (struct pair_occurrence){place, PAIR_NONE};
    if (pair->first == PAIR_NONE)
        pair->first = index;
    else
        counts->occurrences[pair->last].next = index;
    pair->last = index;
    return true;
}

bool pair_counts_add(struct pair_counts *counts, int32_t left, int32_t right, uint64_t times,
                     uint32_t place)
{
    struct pair_count *pair = find_or_add(counts, left, right);
    if (!pair || !add_occurrence(counts, pair, place))
        return false;
    pair->count += times;
    if (pair->is_raised)
        return true;
    uint32_t *raised =
        array_grow(counts->raised, counts->raised_count, &counts->raised_capacity, sizeof *raised);
    if (!raised)
        return false;
    counts->raised = raised;
    counts->raised[counts->raised_count++] = (uint32_t)(pair - counts->pairs);
    pair->is_raised = true;
    return true;
}

void pair_counts_subtract(struct pair_counts *counts, int32_t left, int32_t right, uint64_t times)
{
    counts->pairs[*find_slot(counts, left, right) - 1].count -= times;
}

static bool goes_first(const struct pair_counts *counts, struct pair_candidate a,
                       struct pair_candidate b)
{
    if (a.count != b.count)
        return a.count > b.count;
    const struct pair_count *one = &counts->pairs[a.pair], *other = &counts->pairs[b.pair];
    return one->left != other->left ? one->left < other->left : one->right < other->right;
}

static bool push(struct pair_counts *counts, uint32_t pair)
{
    struct pair_candidate *queue =
        array_grow(counts->queue, counts->queued, &counts->queue_capacity, sizeof *queue);
    if (!queue)
        return false;
    counts->queue = queue;
    struct pair_candidate candidate = {counts->pairs[pair].count, pair};
    size_t at = counts->queued++;
    for (; at > 0 && goes_first(counts, candidate, counts->queue[(at - 1) / 2]); at = (at - 1) / 2)
        counts->queue[at] = counts->queue[(at - 1) / 2];
    counts->queue[at] = candidate;
    return true;
}

static struct pair_candidate pop(struct pair_counts *counts)
{
    struct pair_candidate *queue = counts->queue, first = queue[0], last = queue[--counts->queued];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < counts->queued; at = child) {
        if (child + 1 < counts->queued && goes_first(counts, queue[child + 1], queue[child]))
            child++;
        if (!goes_first(counts, queue[child], last))
            break;
        queue[at] = queue[child];
    }
    queue[at] = last;
    return first;
}

bool pair_counts_settle(struct pair_counts *counts)
{
    for (size_t i = 0; i < counts->raised_count; i++) {
        counts->pairs[counts->raised[i]].is_raised = false;
        if (!push(counts, counts->raised[i]))
            return false;
    }
    counts->raised_count = 0;
    return true;
}

/* Counts of the queue may be old. One that has fallen is queued again, in the room that it left;
 * one that has risen was queued when it did. */
bool pair_counts_pop(struct pair_counts *counts, struct pair_top *top)
{
    while (counts->queued > 0) {
        struct pair_candidate candidate = pop(counts);
        struct pair_count *pair = &counts->pairs[candidate.pair];
        if (pair->first == PAIR_NONE)
            continue;
        if (candidate.count != pair->count) {
            if (candidate.count > pair->count)
                push(counts, candidate.pair);
            continue;
        }
        *top = (struct pair_top){pair->left, pair->right, pair->count, pair->first};
        pair->first = pair->last = PAIR_NONE;
        return true;
    }
    return false;
}

bool pair_counts_next_place(const struct pair_counts *counts, uint32_t *occurrence, uint32_t *place)
{
    if (*occurrence == PAIR_NONE)
        return false;
    *place = counts->occurrences[*occurrence].place;
    *occurrence = counts->occurrences[*occurrence].next;
    return true;
}

void pair_counts_release(struct pair_counts *counts)
{
    free(counts->pairs);
    free(counts->slots);
    free(counts->occurrences);
    free(counts->queue);
    free(counts->raised);
    memset(counts, 0, sizeof *counts);
}
