#include "text/vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo): the hash of a text is a state from which the hash of
 * any longer text goes on. */
static const uint64_t hash_start = UINT64_C(0xCBF29CE484222325);

static uint64_t hash_byte(uint64_t state, char byte)
{
    return (state ^ (unsigned char)byte) * UINT64_C(0x100000001B3);
}

static uint64_t hash_bytes(uint64_t state, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        state = hash_byte(state, bytes[i]);
    return state;
}

static uint32_t fold(uint64_t state)
{
    return (uint32_t)(state ^ (state >> 32));
}

bool vocabulary_create(struct vocabulary *vocabulary, int32_t size, size_t pieces, size_t bytes,
                       struct attn_error *error)
{
    memset(vocabulary, 0, sizeof *vocabulary);
    if (pieces > VOCABULARY_ID_LIMIT || bytes > UINT32_MAX - 1 - pieces)
        return attn_error_set(error, "the vocabulary is too large: %zu pieces of %zu bytes", pieces,
                              bytes);
    size_t slots = 2;
    while (slots < 2 * pieces)
        slots *= 2;
    vocabulary->bytes = 1 + bytes + pieces; /* offset 0 stands for no piece */
    vocabulary->used = 1;
    vocabulary->size = size;
    vocabulary->slot_mask = (uint32_t)(slots - 1);
    vocabulary->spellings = malloc(vocabulary->bytes);
    vocabulary->begins = calloc(size > 0 ? (size_t)size : 1, sizeof *vocabulary->begins);
    vocabulary->slots = malloc(slots * sizeof *vocabulary->slots);
    if (!vocabulary->spellings || !vocabulary->begins || !vocabulary->slots) {
        vocabulary_release(vocabulary);
        return attn_error_memory(error);
    }
    for (size_t i = 0; i < slots; i++)
        vocabulary->slots[i] = (struct vocabulary_slot){0, VOCABULARY_NO_ID};
    return true;
}

void vocabulary_release(struct vocabulary *vocabulary)
{
    free(vocabulary->spellings);
    free(vocabulary->begins);
    free(vocabulary->slots);
    memset(vocabulary, 0, sizeof *vocabulary);
}

const char *vocabulary_spelling(const struct vocabulary *vocabulary, int32_t id)
{
    if (id < 0 || id >= vocabulary->size || vocabulary->begins[id] == 0)
        return NULL;
    return vocabulary->spellings + vocabulary->begins[id];
}

/* Whether the id's spelling is prefix and text. The first NUL ends strncmp, so that neither
 * comparison leaves the spelling. */
static bool is_spelled(const struct vocabulary *vocabulary, int32_t id, const char *prefix,
                       size_t prefix_length, const char *text, size_t length)
{
    const char *spelling = vocabulary->spellings + vocabulary->begins[id];
    return strncmp(spelling, prefix, prefix_length) == 0 &&
           strncmp(spelling + prefix_length, text, length) == 0 &&
           spelling[prefix_length + length] == '\0';
}

/* The slot of the piece, or the free one where it would stand. */
static struct vocabulary_slot *find_slot(const struct vocabulary *vocabulary, uint32_t hash,
                                         const char *prefix, size_t prefix_length, const char *text,
                                         size_t length)
{
    uint32_t at = hash & vocabulary->slot_mask;
    for (;; at = (at + 1) & vocabulary->slot_mask) {
        struct vocabulary_slot *slot = &vocabulary->slots[at];
        if (slot->id == VOCABULARY_NO_ID ||
            (slot->hash == hash &&
             is_spelled(vocabulary, slot->id, prefix, prefix_length, text, length)))
            return slot;
    }
}

bool vocabulary_add(struct vocabulary *vocabulary, int32_t id, const char *piece, size_t length,
                    enum vocabulary_entry entry)
{
    if (vocabulary->begins[id] != 0)
        return false;
    uint32_t hash = fold(hash_bytes(hash_start, piece, length));
    struct vocabulary_slot *slot = find_slot(vocabulary, hash, "", 0, piece, length);
    if (slot->id != VOCABULARY_NO_ID)
        return false;
    if (entry == VOCABULARY_FOUND) {
        *slot = (struct vocabulary_slot){hash, id};
        if (length > vocabulary->longest)
            vocabulary->longest = length;
    }
    vocabulary->begins[id] = (uint32_t)vocabulary->used;
    memcpy(vocabulary->spellings + vocabulary->used, piece, length);
    vocabulary->spellings[vocabulary->used + length] = '\0';
    vocabulary->used += length + 1;
    return true;
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *piece, size_t length)
{
    uint32_t hash = fold(hash_bytes(hash_start, piece, length));
    return find_slot(vocabulary, hash, "", 0, piece, length)->id;
}

int32_t vocabulary_find_joined(const struct vocabulary *vocabulary, const char *left,
                               size_t left_length, const char *right, size_t right_length)
{
    uint64_t state = hash_bytes(hash_bytes(hash_start, left, left_length), right, right_length);
    return find_slot(vocabulary, fold(state), left, left_length, right, right_length)->id;
}

int32_t vocabulary_longest(const struct vocabulary *vocabulary, const char *prefix,
                           size_t prefix_length, const char *text, size_t text_length,
                           size_t *length)
{
    int32_t id = VOCABULARY_NO_ID;
    if (prefix_length > vocabulary->longest)
        return id;
    uint64_t state = hash_bytes(hash_start, prefix, prefix_length);
    size_t limit = vocabulary->longest - prefix_length;
    for (size_t i = 0; i < text_length && i < limit && text[i] != '\0'; i++) {
        state = hash_byte(state, text[i]);
        int32_t longer = find_slot(vocabulary, fold(state), prefix, prefix_length, text, i + 1)->id;
        if (longer != VOCABULARY_NO_ID) {
            id = longer;
            *length = i + 1;
        }
    }
    return id;
}
