/* base64 (RFC 4648, padded) as bytes come. */
#ifndef ATTN_DRAW_BASE64_H
#define ATTN_DRAW_BASE64_H

#include "base/buffer.h"

/* Start with {.out = …}; end with base64_end. */
struct base64 {
    struct attn_buffer *out;
    unsigned bits; /* of the bytes that wait */
    int waiting;
};

void base64_add(struct base64 *text, unsigned byte);
void base64_add_pair(struct base64 *text, unsigned value); /* two bytes, little-endian */
void base64_end(struct base64 *text);

/* The length of `bytes` bytes as text; SIZE_MAX where no size_t holds it. */
size_t base64_text_size(size_t bytes);

#endif
