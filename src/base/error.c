#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the well-formed character (table 3-7 of the Unicode standard) at `text`, which a NUL
 * ends; 0 where there is none. */
static size_t character_size(const unsigned char *text)
{
    unsigned char first = text[0], least = 0x80, most = 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    if (first == 0xe0)
        least = 0xa0; /* not overlong */
    else if (first == 0xed)
        most = 0x9f; /* no surrogates */
    else if (first == 0xf0)
        least = 0x90;
    else if (first == 0xf4)
        most = 0x8f; /* at most U+10FFFF */
    if (text[1] < least || text[1] > most)
        return 0;
    size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (size_t i = 2; i < size; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return size;
}

/* Control characters, those of U+0080 to U+009F too, and the separators of lines and paragraphs. */
static bool breaks_line(const unsigned char *text)
{
    return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0) ||
           (text[0] == 0xe2 && text[1] == 0x80 && (text[2] == 0xa8 || text[2] == 0xa9));
}

/* In place: each character that is replaced becomes one byte. */
static void make_printable(char *message)
{
    const unsigned char *from = (const unsigned char *)message;
    while (*from) {
        size_t size = character_size(from);
        if (size == 0 || breaks_line(from)) {
            *message++ = '?';
            from += size > 0 ? size : 1;
            continue;
        }
        memmove(message, from, size);
        message += size;
        from += size;
    }
    *message = '\0';
}

bool attn_error_set(struct attn_error *error, const char *format, ...)
{
    if (!error)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    make_printable(error->message);
    return false;
}

bool attn_error_memory(struct attn_error *error)
{
    return attn_error_set(error, "out of memory");
}
