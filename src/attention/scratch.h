/* Laying parts of the workspace out: the same calls first count its bytes, then hand them out. */
#ifndef ATTN_ATTENTION_SCRATCH_H
#define ATTN_ATTENTION_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Start with base NULL to count, with the memory to hand out; used from 0. */
struct attn_scratch {
    char *base;
    int64_t used;  /* bytes so far */
    bool overflow; /* the sum has left 64 bits */
};

/* rows · width elements of `size` bytes on whole cache lines; NULL while counting. */
void *attn_scratch_take(struct attn_scratch *scratch, int64_t rows, int64_t width, int64_t size);

static inline float *attn_scratch_floats(struct attn_scratch *scratch, int64_t rows, int64_t width)
{
    return attn_scratch_take(scratch, rows, width, (int64_t)sizeof(float));
}

#endif
