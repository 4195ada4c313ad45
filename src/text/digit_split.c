#include "text/digit_split.h"

#include "text/unicode.h"

size_t digit_split_end(enum digit_split split, const char *text, size_t size, size_t begin)
{
    size_t at, next;
    if (split == DIGITS_WITHIN)
        return size;
    bool is_number = unicode_is_number(utf8_decode(text, size, begin, &at));
    if (is_number && split == DIGITS_SINGLE)
        return at;
    for (; at < size; at = next)
        if (unicode_is_number(utf8_decode(text, size, at, &next)) != is_number)
            break;
    return at;
}
