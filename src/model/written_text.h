/* What can be shown of a text while it is written: whole characters, and nothing that may still
 * become a stop string. */
#ifndef ATTN_MODEL_WRITTEN_TEXT_H
#define ATTN_MODEL_WRITTEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "text/utf8_stream.h"

/* Where one of them stands in the text, it ends before it. */
struct stop_strings {
    const char *const *strings; /* [count], UTF-8, not empty */
    size_t count;
};

/* Start from zeros. */
struct written_text {
    struct utf8_stream stream;
    struct attn_buffer held; /* shown bytes that are being shown, then those that wait */
    size_t shown;
    bool stopped; /* a stop string came: the text has ended */
};

/* The next bytes of a text that has not stopped. written_text_shown is what can be shown of it and
 * of what waited. False where memory is missing. */
bool written_text_add(struct written_text *text, const char *bytes, size_t size,
                      const struct stop_strings *stops);

/* The end of the text: the rest is to be shown, a character that is cut as U+FFFD. */
bool written_text_end(struct written_text *text);

/* Lives until the next call. */
static inline const char *written_text_shown(const struct written_text *text)
{
    return text->shown > 0 ? text->held.data : "";
}

void written_text_release(struct written_text *text);

#endif
