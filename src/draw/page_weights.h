/* The weights of a map in the form that its page carries: small, and of a size known beforehand. */
#ifndef ATTN_DRAW_PAGE_WEIGHTS_H
#define ATTN_DRAW_PAGE_WEIGHTS_H

#include "draw/attention_map.h"

/* A weight is two bytes, little-endian: round(weight / largest · 65534); 65535 is not a number.
 *   strongest = 0  all weights, [panels][rows][columns]
 *   strongest = k  the k largest of each row, [panels][rows][k] of (column, weight), the column in
 * two bytes too */
struct page_weights {
    size_t strongest;
    size_t bytes;
};

/* The fullest form whose base64 text is at most `budget` bytes. False where even one weight a row
 * is more; `plan` then holds what that would take. */
bool page_weights_plan(const struct attention_map *map, size_t budget, struct page_weights *plan);

/* The length of `bytes` bytes as base64 (RFC 4648, padded). */
size_t page_weights_text_size(size_t bytes);

/* Appends the base64 text. *share is the part of all weight that the page holds, 0..1. */
void page_weights_add(const struct attention_map *map, const struct page_weights *plan,
                      float largest, struct attn_buffer *out, double *share);

#endif
