/* What a byte of a template is: of ASCII only, in every locale. */
#ifndef ATTN_TEXT_JINJA_LETTER_H
#define ATTN_TEXT_JINJA_LETTER_H

#include <stdbool.h>

static inline bool jinja_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool jinja_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Of a name or a number. */
static inline bool jinja_is_letter(char c)
{
    return c == '_' || jinja_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#endif
