/* Asking the memory for what will be read soon. */
#ifndef ATTN_BASE_PREFETCH_H
#define ATTN_BASE_PREFETCH_H

#include <stdint.h>

#include "base/memory.h"

/* Into the second cache level, every line that `bytes` bytes from `data` on touch. Nothing is read:
 * any address is allowed. */
static inline void attn_prefetch(const void *data, int64_t bytes)
{
#if defined(__GNUC__)
    const char *line = (const char *)((uintptr_t)data - (uintptr_t)data % ATTN_ALIGNMENT);
    for (; line < (const char *)data + bytes; line += ATTN_ALIGNMENT)
        __builtin_prefetch(line, 0, 2);
#else
    (void)data, (void)bytes;
#endif
}

#endif
