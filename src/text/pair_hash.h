/* Where a pair of ids begins to be looked for in a table of open addressing. */
#ifndef ATTN_TEXT_PAIR_HASH_H
#define ATTN_TEXT_PAIR_HASH_H

#include <stdint.h>

/* 2⁶⁴ over the golden ratio: upper bits depend on all (D. Knuth, "The Art of Computer Programming",
 * volume 3, 6.4). */
static inline uint32_t pair_hash(int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

#endif
