/* The weights of a map in the form that its page carries: small, and of a size known beforehand. */
#ifndef ATTN_DRAW_PAGE_WEIGHTS_H
#define ATTN_DRAW_PAGE_WEIGHTS_H

#include "draw/attention_map.h"
#include "draw/strongest.h"

enum { PAGE_COLUMN_LIMIT = 65536 }; /* a link's column is two bytes */

/* The length as base64 of all weights; SIZE_MAX for a map of links. */
size_t page_weights_whole_size(const struct attention_map *map);

/* How many rows want how many links (strongest.h), counted up to `limit`, at most STRONGEST_LIMIT:
 * rows[limit] are those that want so many or more. A lower limit is quicker. */
struct page_links {
    size_t limit;
    size_t rows[STRONGEST_LIMIT + 1];
};

void page_links_count(const struct attention_map *map, size_t limit, struct page_links *links);

/* The length as base64 where each row has at most `most` links. */
size_t page_links_size(const struct page_links *links, size_t most);

/* The most links a row, up to the limit, whose text is at most `budget` bytes and which some row
 * wants; 0 where one link a row is more. */
size_t page_links_fit(const struct page_links *links, size_t budget);

/* Appends the base64 text: all weights where `strongest` is 0, else at most so many links a row.
 * *share is the part of all weight that the page holds, 0..1. */
void page_weights_add(const struct attention_map *map, size_t strongest, float largest,
                      struct attn_buffer *out, double *share);

#endif
