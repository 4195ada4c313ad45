/* Bytes that come in pieces, shown as whole characters. */
#ifndef ATTN_TEXT_UTF8_STREAM_H
#define ATTN_TEXT_UTF8_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Start from zeros. */
struct utf8_stream {
    unsigned char waiting[4]; /* the begin of a character whose rest is still to come */
    size_t count;
};

/* Appends to `out` what is complete now: characters as they are, and each ill-formed part (the
 * longest begin of a character that is there, as the Unicode standard recommends in 3.9) as U+FFFD.
 */
void utf8_stream_add(struct utf8_stream *stream, const char *bytes, size_t size,
                     struct attn_buffer *out);

/* The end: what waits can never become whole, and is shown as U+FFFD. */
void utf8_stream_end(struct utf8_stream *stream, struct attn_buffer *out);

#endif
