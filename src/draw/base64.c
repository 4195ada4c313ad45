#include "draw/base64.h"

#include <stdint.h>

#include "base/checked.h"

void base64_end(struct base64 *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!text->waiting)
        return;
    unsigned bits = text->bits << (8 * (3 - text->waiting));
    char four[4] = {digits[bits >> 18 & 63], digits[bits >> 12 & 63],
                    text->waiting > 1 ? digits[bits >> 6 & 63] : '=',
                    text->waiting > 2 ? digits[bits & 63] : '='};
    attn_buffer_add(text->out, four, sizeof four);
    *text = (struct base64){.out = text->out};
}

void base64_add(struct base64 *text, unsigned byte)
{
    text->bits = text->bits << 8 | byte;
    if (++text->waiting == 3)
        base64_end(text);
}

void base64_add_pair(struct base64 *text, unsigned value)
{
    base64_add(text, value & 0xff);
    base64_add(text, value >> 8 & 0xff);
}

size_t base64_text_size(size_t bytes)
{
    size_t groups = bytes / 3 + (bytes % 3 != 0), size;
    return attn_checked_size_multiply(groups, 4, &size) ? size : SIZE_MAX;
}
