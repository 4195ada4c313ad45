#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

bool attn_error_set(struct attn_error *error, const char *format, ...)
{
    if (!error)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return false;
}

bool attn_error_memory(struct attn_error *error)
{
    return attn_error_set(error, "out of memory");
}
