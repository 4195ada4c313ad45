#include "text/text_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 256, COUNT_LIMIT = 1 << 30 };

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), folded to 32 bits. */
static uint32_t hash_of(const char *text, size_t size)
{
    uint64_t state = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        state = (state ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
    return (uint32_t)(state ^ (state >> 32));
}

/* The slot of the text, or the free one where it would stand. */
static uint32_t *find_slot(const struct text_table *table, uint32_t hash, const char *text,
                           size_t size)
{
    for (uint32_t at = hash & table->slot_mask;; at = (at + 1) & table->slot_mask) {
        uint32_t *slot = &table->slots[at];
        if (*slot == 0)
            return slot;
        const struct text_entry *entry = &table->entries[*slot - 1];
        if (entry->hash == hash && entry->size == size &&
            memcmp(table->bytes + entry->begin, text, size) == 0)
            return slot;
    }
}

/* Slots for twice as many entries. */
static bool grow_slots(struct text_table *table)
{
    size_t count = table->slots ? 2 * ((size_t)table->slot_mask + 1) : FIRST_SLOTS;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->slot_mask = (uint32_t)(count - 1);
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t at = table->entries[i].hash & table->slot_mask;
        while (slots[at] != 0)
            at = (at + 1) & table->slot_mask;
        slots[at] = i + 1;
    }
    return true;
}

static bool reserve(struct text_table *table, size_t size)
{
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? 2 * table->capacity : FIRST_SLOTS / 2;
        struct text_entry *entries = realloc(table->entries, capacity * sizeof *entries);
        if (!entries)
            return false;
        table->entries = entries;
        table->capacity = capacity;
    }
    if (size > table->room - table->used) {
        if (table->room > SIZE_MAX / 2 - size)
            return false;
        size_t room = 2 * table->room + size;
        char *bytes = realloc(table->bytes, room);
        if (!bytes)
            return false;
        table->bytes = bytes;
        table->room = room;
    }
    return true;
}

bool text_table_add(struct text_table *table, const char *text, size_t size, uint64_t times,
                    uint32_t *index)
{
    if (2 * (size_t)table->count >= (table->slots ? (size_t)table->slot_mask + 1 : 0) &&
        (table->count >= COUNT_LIMIT || !grow_slots(table)))
        return false;
    uint32_t hash = hash_of(text, size), *slot = find_slot(table, hash, text, size);
    if (*slot == 0) {
        if (!reserve(table, size))
            return false;
        table->entries[table->count] = (struct text_entry){table->used, size, 0, hash};
        if (size > 0)
            memcpy(table->bytes + table->used, text, size);
        table->used += size;
        *slot = ++table->count;
    }
    *index = *slot - 1;
    table->entries[*index].times += times;
    return true;
}

const char *text_table_get(const struct text_table *table, uint32_t index, size_t *size)
{
    *size = table->entries[index].size;
    return table->bytes + table->entries[index].begin;
}

void text_table_release(struct text_table *table)
{
    free(table->entries);
    free(table->bytes);
    free(table->slots);
    memset(table, 0, sizeof *table);
}
