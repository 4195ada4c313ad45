/* A number by which damage to bytes is noticed. */
#ifndef ATTN_TRAIN_CHECKSUM_H
#define ATTN_TRAIN_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of the bytes that had `sum` (0: none) with these behind them. Any change within
 * eight bytes beside each other changes it; it is no defence against a forger. The parts in which
 * bytes are added count: the same parts, the same checksum. */
uint64_t checksum_add(uint64_t sum, const void *bytes, size_t size);

#endif
