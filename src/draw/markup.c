#include "draw/markup.h"

#include <string.h>

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void markup_add_text(struct attn_buffer *out, const char *text)
{
    for (;;) {
        size_t plain = strcspn(text, "&<>\"'");
        attn_buffer_add(out, text, plain);
        text += plain;
        if (!*text)
            return;
        attn_buffer_add_text(out, entity(*text++));
    }
}
