#include "text/pre_tokenizer.h"

#include "text/unicode.h"

bool pre_tokenizer_next(const char *text, size_t size, size_t *begin, size_t *end)
{
    size_t at = *begin, next = at;
    while (at < size && unicode_is_space(utf8_decode(text, size, at, &next)))
        at = next;
    *begin = at;
    for (; at < size; at = next) {
        uint32_t code_point = utf8_decode(text, size, at, &next);
        if (unicode_is_space(code_point))
            break;
        if (unicode_class_of(code_point) == UNICODE_PUNCTUATION) {
            if (at == *begin)
                at = next;
            break;
        }
    }
    *end = at;
    return *begin < *end;
}
