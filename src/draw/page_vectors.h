/* Queries, keys and values in the form that a page carries. */
#ifndef ATTN_DRAW_PAGE_VECTORS_H
#define ATTN_DRAW_PAGE_VECTORS_H

#include "draw/attention_map.h"

/* Refuses vectors that do not fit each other or the map's rows. A map without any passes. */
bool page_vectors_check(const struct attention_map *map, struct attn_error *error);

/* The length of all codes as base64, the greater part of the object; SIZE_MAX where no size_t holds
 * it. */
size_t page_vectors_codes_size(const struct map_vectors *vectors);

/* Appends the object that page_data.h calls "vectors". */
void page_vectors_add(const struct attention_map *map, struct attn_buffer *out);

#endif
