#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

/* Room for `more` bytes and the NUL behind them; false once an allocation has failed. */
static bool reserve(struct attn_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    if (more < buffer->capacity - buffer->size)
        return true;
    if (more >= SIZE_MAX - buffer->size) {
        buffer->failed = true;
        return false;
    }
    size_t needed = buffer->size + more + 1;
    size_t doubled = buffer->capacity > SIZE_MAX / 2 ? SIZE_MAX : buffer->capacity * 2;
    size_t capacity = doubled < FIRST_CAPACITY ? FIRST_CAPACITY : doubled;
    if (capacity < needed)
        capacity = needed;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void attn_buffer_add(struct attn_buffer *buffer, const void *bytes, size_t size)
{
    if (size == 0 || !reserve(buffer, size))
        return;
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void attn_buffer_add_text(struct attn_buffer *buffer, const char *text)
{
    attn_buffer_add(buffer, text, strlen(text));
}

void attn_buffer_format(struct attn_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if (!reserve(buffer, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)length;
}

void attn_buffer_clear(struct attn_buffer *buffer)
{
    buffer->size = 0;
    if (buffer->data)
        buffer->data[0] = '\0';
}

void attn_buffer_release(struct attn_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct attn_buffer){0};
}
