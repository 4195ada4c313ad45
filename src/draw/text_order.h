/* From the order in which text is stored to the order in which it stands on a line. */
#ifndef ATTN_DRAW_TEXT_ORDER_H
#define ATTN_DRAW_TEXT_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct ordered_letter {
    int32_t shaped; /* the code point to draw: mirrored, or an Arabic presentation form */
    int32_t plain;  /* the code point of the text, for fonts without the other */
};

/* The letters of valid UTF-8 from left to right, in newly allocated memory; NULL when there is
 * none. Characters that are never seen (joiners, variation selectors) are left out. */
struct ordered_letter *text_order_create(const char *text, size_t *count);

#endif
