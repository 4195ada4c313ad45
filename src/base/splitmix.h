/* SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators"
 * (2014)): the n-th number of a stream is attn_splitmix(stream + n·ATTN_SPLITMIX_STEP), n ≥ 1. */
#ifndef ATTN_BASE_SPLITMIX_H
#define ATTN_BASE_SPLITMIX_H

#include <stdint.h>

#define ATTN_SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* One to one, and each bit of the input changes about half of the output's. */
static inline uint64_t attn_splitmix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
