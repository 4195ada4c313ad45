/* Random numbers by counting: Philox4x32-10 makes four random words of a counter of four and a key
 * of two (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3"
 * (2011)). Whoever knows a place has its number without those before it. */
#ifndef ATTN_BASE_PHILOX_H
#define ATTN_BASE_PHILOX_H

#include <stdint.h>
#include <string.h>

enum { PHILOX_ROUNDS = 10, PHILOX_WORDS = 4 };

/* What the counter is multiplied by, and what is added to the key from round to round (table 2). */
#define PHILOX_FACTOR_0 UINT32_C(0xd2511f53)
#define PHILOX_FACTOR_1 UINT32_C(0xcd9e8d57)
#define PHILOX_STEP_0   UINT32_C(0x9e3779b9)
#define PHILOX_STEP_1   UINT32_C(0xbb67ae85)

/* One round: both products are cut in halves; the lower ones go on as they are, the upper ones mix
 * with the two words that were not multiplied, and with the key. */
static inline void attn_philox_round(uint32_t x[PHILOX_WORDS], uint32_t key_0, uint32_t key_1)
{
    uint64_t first = (uint64_t)x[0] * PHILOX_FACTOR_0;
    uint64_t second = (uint64_t)x[2] * PHILOX_FACTOR_1;
    x[0] = (uint32_t)(second >> 32) ^ x[1] ^ key_0;
    x[1] = (uint32_t)second;
    x[2] = (uint32_t)(first >> 32) ^ x[3] ^ key_1;
    x[3] = (uint32_t)first;
}

/* The four words that belong to a counter and a seed, whose lower half is the key's first word. */
static inline void attn_philox(uint64_t seed, const uint32_t counter[PHILOX_WORDS],
                               uint32_t words[PHILOX_WORDS])
{
    const uint32_t key_0 = (uint32_t)seed, key_1 = (uint32_t)(seed >> 32);
    uint32_t x[PHILOX_WORDS];
    memcpy(x, counter, sizeof x);
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++)
        attn_philox_round(x, key_0 + round * PHILOX_STEP_0, key_1 + round * PHILOX_STEP_1);
    memcpy(words, x, sizeof x);
}

#endif
