#include "text/byte_pair.h"

#include <stdlib.h>
#include <string.h>

#include "text/pair_hash.h"
#include "text/unicode.h"

enum { NO_RANK = -1 };
static const uint32_t no_place = UINT32_MAX;

/* The slot of a pair, or the free one where it would stand. */
static uint32_t *find_slot(const struct byte_pair *model, int32_t left, int32_t right)
{
    for (uint32_t at = pair_hash(left, right) & model->slot_mask;;
         at = (at + 1) & model->slot_mask) {
        uint32_t *slot = &model->slots[at];
        if (*slot == 0)
            return slot;
        const struct byte_pair_merge *merge = &model->merges[*slot - 1];
        if (merge->left == left && merge->right == right)
            return slot;
    }
}

static int64_t rank_of(const struct byte_pair *model, int32_t left, int32_t right)
{
    uint32_t slot = *find_slot(model, left, right);
    return slot == 0 ? NO_RANK : (int64_t)slot - 1;
}

static void find_bytes(struct byte_pair *model)
{
    for (int byte = 0; byte < BYTE_LEVEL_BYTES; byte++) {
        char letter[UTF8_LIMIT];
        int length = utf8_encode(byte_level_code_point((unsigned char)byte), letter);
        model->byte_ids[byte] = vocabulary_find(&model->vocabulary, letter, (size_t)length);
    }
}

bool byte_pair_create_merges(struct byte_pair *model, size_t merges, struct attn_error *error)
{
    if (merges > VOCABULARY_ID_LIMIT)
        return attn_error_set(error, "the model has %zu merges, expected at most %d", merges,
                              VOCABULARY_ID_LIMIT);
    size_t slots = 2;
    while (slots < 2 * merges)
        slots *= 2;
    model->slot_mask = (uint32_t)(slots - 1);
    model->slots = calloc(slots, sizeof *model->slots);
    model->merges = malloc((merges ? merges : 1) * sizeof *model->merges);
    if (!model->slots || !model->merges)
        return attn_error_memory(error);
    find_bytes(model);
    return true;
}

/* Two halves of a spelling, of at most so many bytes in a message. */
enum { SHOWN_LIMIT = 100 };

static int shown(size_t length)
{
    return length < SHOWN_LIMIT ? (int)length : SHOWN_LIMIT;
}

static bool find_piece(const struct byte_pair *model, const char *left, size_t left_length,
                       const char *right, size_t right_length, int32_t *id, const char *file,
                       struct attn_error *error)
{
    *id = vocabulary_find_joined(&model->vocabulary, left, left_length, right, right_length);
    return *id != VOCABULARY_NO_ID ||
           attn_error_set(
               error, "%s: merge %u needs the piece \"%.*s%.*s\", which the vocabulary lacks", file,
               (unsigned)model->merge_count, shown(left_length), left, shown(right_length), right);
}

bool byte_pair_add_merge(struct byte_pair *model, const char *left, size_t left_length,
                         const char *right, size_t right_length, const char *file,
                         struct attn_error *error)
{
    struct byte_pair_merge merge;
    if (!find_piece(model, left, left_length, "", 0, &merge.left, file, error) ||
        !find_piece(model, right, right_length, "", 0, &merge.right, file, error) ||
        !find_piece(model, left, left_length, right, right_length, &merge.merged, file, error))
        return false;
    uint32_t *slot = find_slot(model, merge.left, merge.right);
    model->merges[model->merge_count++] = merge;
    *slot = model->merge_count;
    return true;
}

void byte_pair_release(struct byte_pair *model)
{
    vocabulary_release(&model->vocabulary);
    free(model->merges);
    free(model->slots);
    model->merges = NULL;
    model->slots = NULL;
}

static void push(struct byte_pair_word *split, uint64_t entry)
{
    size_t at = split->queued++;
    for (; at > 0 && split->queue[(at - 1) / 2] > entry; at = (at - 1) / 2)
        split->queue[at] = split->queue[(at - 1) / 2];
    split->queue[at] = entry;
}

static uint64_t pop(struct byte_pair_word *split)
{
    uint64_t smallest = split->queue[0], last = split->queue[--split->queued];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < split->queued; at = child) {
        if (child + 1 < split->queued && split->queue[child + 1] < split->queue[child])
            child++;
        if (last <= split->queue[child])
            break;
        split->queue[at] = split->queue[child];
    }
    split->queue[at] = last;
    return smallest;
}

/* Queues the pair that begins at this place, where it is known. */
static void push_pair(const struct byte_pair *model, struct byte_pair_word *split, uint32_t place)
{
    const struct byte_pair_piece *piece = &split->pieces[place];
    if (piece->next == no_place)
        return;
    int64_t rank = rank_of(model, piece->id, split->pieces[piece->next].id);
    if (rank != NO_RANK)
        push(split, (uint64_t)rank << 32 | place);
}

/* Room for `size` pieces and all pairs that they may ever form: each merge leaves a piece less and
 * makes two pairs. */
static bool reserve(struct byte_pair_word *split, size_t size)
{
    if (size > split->capacity) {
        size_t capacity = size < 64 ? 64 : size;
        if (capacity > SIZE_MAX / (3 * sizeof *split->queue))
            return false;
        struct byte_pair_piece *pieces = realloc(split->pieces, capacity * sizeof *split->pieces);
        if (!pieces)
            return false;
        split->pieces = pieces;
        split->capacity = capacity;
    }
    if (split->queue_capacity < 3 * split->capacity) {
        uint64_t *queue = realloc(split->queue, 3 * split->capacity * sizeof *queue);
        if (!queue)
            return false;
        split->queue = queue;
        split->queue_capacity = 3 * split->capacity;
    }
    return true;
}

/* A byte that has no piece. */
static void add_unknown(const struct byte_pair *model, struct byte_pair_word *split,
                        unsigned char byte, uint32_t at)
{
    struct byte_pair_piece *last = split->count ? &split->pieces[split->count - 1] : NULL;
    if (model->unknown_id == VOCABULARY_NO_ID) {
        if (split->dropped_count++ == 0)
            split->first_dropped = byte;
    } else if (model->fuse_unknown && last && last->id == model->unknown_id && last->end == at)
        last->end = at + 1;
    else
        split->pieces[split->count++] =
            (struct byte_pair_piece){model->unknown_id, at, at + 1, 0, 0};
}

static void begin_with_bytes(const struct byte_pair *model, const char *word, size_t size,
                             struct byte_pair_word *split)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)word[i];
        int32_t id = model->byte_ids[byte];
        uint32_t at = (uint32_t)i;
        if (id == VOCABULARY_NO_ID)
            add_unknown(model, split, byte, at);
        else
            split->pieces[split->count++] = (struct byte_pair_piece){id, at, at + 1, 0, 0};
    }
    for (size_t i = 0; i < split->count; i++) {
        split->pieces[i].previous = i > 0 ? (uint32_t)(i - 1) : no_place;
        split->pieces[i].next = i + 1 < split->count ? (uint32_t)(i + 1) : no_place;
    }
}

/* The piece at this place takes in the one behind it. */
static void merge(struct byte_pair_word *split, uint32_t place, int32_t merged)
{
    struct byte_pair_piece *left = &split->pieces[place], *right = &split->pieces[left->next];
    left->id = merged;
    left->end = right->end;
    left->next = right->next;
    right->id = VOCABULARY_NO_ID;
    if (left->next != no_place)
        split->pieces[left->next].previous = place;
}

/* Whether an entry of the queue still holds. The reference asks only that the pair at its place
 * becomes the same piece, by whatever pair. */
static bool holds(const struct byte_pair *model, const struct byte_pair_word *split, uint32_t rank,
                  uint32_t place)
{
    const struct byte_pair_piece *piece = &split->pieces[place];
    if (piece->id == VOCABULARY_NO_ID || piece->next == no_place)
        return false;
    int64_t now = rank_of(model, piece->id, split->pieces[piece->next].id);
    return now != NO_RANK && model->merges[now].merged == model->merges[rank].merged;
}

/* *id is the piece that is all of the word, or VOCABULARY_NO_ID. */
static bool find_whole(const struct byte_pair *model, const char *word, size_t size,
                       struct byte_pair_word *split, int32_t *id)
{
    *id = VOCABULARY_NO_ID;
    if (!model->whole_words || size == 0 || size > model->vocabulary.longest)
        return true;
    attn_buffer_clear(&split->spelling);
    byte_level_spell(word, size, &split->spelling);
    if (split->spelling.failed)
        return false;
    *id = vocabulary_find(&model->vocabulary, split->spelling.data, split->spelling.size);
    return true;
}

static void merge_pairs(const struct byte_pair *model, struct byte_pair_word *split)
{
    for (uint32_t place = 0; place < split->count; place++)
        push_pair(model, split, place);
    while (split->queued > 0) {
        uint64_t entry = pop(split);
        uint32_t rank = (uint32_t)(entry >> 32), place = (uint32_t)entry;
        if (!holds(model, split, rank, place))
            continue;
        merge(split, place, model->merges[rank].merged);
        if (split->pieces[place].previous != no_place)
            push_pair(model, split, split->pieces[place].previous);
        push_pair(model, split, place);
    }
}

/* Closes the gaps that merging has left. */
static void keep_pieces(struct byte_pair_word *split)
{
    size_t count = 0;
    for (size_t i = 0; i < split->count; i++)
        if (split->pieces[i].id != VOCABULARY_NO_ID)
            split->pieces[count++] = split->pieces[i];
    split->count = count;
}

bool byte_pair_split(const struct byte_pair *model, const char *word, size_t size,
                     struct byte_pair_word *split)
{
    int32_t whole;
    split->count = split->queued = split->dropped_count = 0;
    if (!reserve(split, size) || !find_whole(model, word, size, split, &whole))
        return false;
    if (whole != VOCABULARY_NO_ID) {
        split->pieces[split->count++] = (struct byte_pair_piece){whole, 0, (uint32_t)size, 0, 0};
        return true;
    }
    begin_with_bytes(model, word, size, split);
    merge_pairs(model, split);
    keep_pieces(split);
    return true;
}

void byte_pair_word_release(struct byte_pair_word *split)
{
    free(split->pieces);
    free(split->queue);
    attn_buffer_release(&split->spelling);
    memset(split, 0, sizeof *split);
}
