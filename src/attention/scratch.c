#include "attention/scratch.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/memory.h"

void *attn_scratch_take(struct attn_scratch *scratch, int64_t rows, int64_t width, int64_t size)
{
    const int64_t line = ATTN_ALIGNMENT;
    int64_t bytes, end;
    if (!attn_checked_multiply(rows, width, &bytes) ||
        !attn_checked_multiply(bytes, size, &bytes) || !attn_checked_add(bytes, line - 1, &bytes) ||
        !attn_checked_add(scratch->used, bytes - bytes % line, &end)) {
        scratch->overflow = true;
        return NULL;
    }
    void *part = scratch->base ? scratch->base + scratch->used : NULL;
    scratch->used = end;
    return part;
}
