/* A byte string that grows. After a failed allocation it stays as it was and remembers the failure,
 * so that a writer checks once at its end. Start from zeros: struct attn_buffer b = {0}. */
#ifndef ATTN_BASE_BUFFER_H
#define ATTN_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct attn_buffer {
    char *data; /* size bytes, then a NUL; NULL while empty */
    size_t size;
    size_t capacity;
    bool failed;
};

void attn_buffer_add(struct attn_buffer *buffer, const void *bytes, size_t size);
void attn_buffer_add_text(struct attn_buffer *buffer, const char *text);
void attn_buffer_format(struct attn_buffer *buffer, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* A JSON string with its quotes. `text` is `size` bytes of valid UTF-8. Escaped are control
 * characters and, so that the string may stand inside a script element, < > & U+2028 U+2029. */
void attn_buffer_add_json_string(struct attn_buffer *buffer, const char *text, size_t size);

/* The shortest decimal that reads back as the same float; NaN and infinities become null. */
void attn_buffer_add_json_float(struct attn_buffer *buffer, float value);

/* Forgets the content, keeps the memory and the knowledge of a failure. */
void attn_buffer_clear(struct attn_buffer *buffer);
void attn_buffer_release(struct attn_buffer *buffer);

#endif
