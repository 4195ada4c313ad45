/* Texts that are counted: each different one once, numbered in the order of their coming. */
#ifndef ATTN_TEXT_TEXT_TABLE_H
#define ATTN_TEXT_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_entry {
    size_t begin, size; /* in the table's bytes */
    uint64_t times;
    uint32_t hash;
};

/* Start from zeros. */
struct text_table {
    struct text_entry *entries; /* [count] */
    uint32_t count, capacity;
    char *bytes; /* of all texts, one behind the other; any bytes */
    size_t used, room;
    uint32_t
        *slots; /* [slot_mask + 1], a power of two: index + 1 of an entry, 0 where it is free */
    uint32_t slot_mask;
};

/* Adds `times` to the text's count; *index is its number. False when there is no memory, or there
 * are more than 2³⁰ texts. */
bool text_table_add(struct text_table *table, const char *text, size_t size, uint64_t times,
                    uint32_t *index);

/* The text of an entry; it lives until the next one is added. */
const char *text_table_get(const struct text_table *table, uint32_t index, size_t *size);

void text_table_release(struct text_table *table);

#endif
