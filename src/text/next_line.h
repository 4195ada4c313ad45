/* A text line by line. */
#ifndef ATTN_TEXT_NEXT_LINE_H
#define ATTN_TEXT_NEXT_LINE_H

#include <stddef.h>
#include <string.h>

/* Sets *end to where the line at text[begin] ends, without "\n" or "\r\n", and returns where the
 * next one begins: `size` behind the last. */
static inline size_t next_line(const char *text, size_t size, size_t begin, size_t *end)
{
    const char *newline = memchr(text + begin, '\n', size - begin);
    *end = newline ? (size_t)(newline - text) : size;
    size_t next = newline ? *end + 1 : size;
    if (*end > begin && text[*end - 1] == '\r')
        --*end;
    return next;
}

#endif
