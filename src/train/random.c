#include "train/random.h"

#include <string.h>

enum { ROUNDS = 10 };

/* Multipliers of a round, and what the key grows by between rounds (Salmon et al., table 2). */
#define MULTIPLIER_0 UINT64_C(0xD2511F53)
#define MULTIPLIER_1 UINT64_C(0xCD9E8D57)
#define WEYL_0       UINT32_C(0x9E3779B9)
#define WEYL_1       UINT32_C(0xBB67AE85)

void random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t words[4])
{
    uint32_t key0 = key[0], key1 = key[1];
    uint32_t x[4];
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = MULTIPLIER_0 * x[0];
        uint64_t product1 = MULTIPLIER_1 * x[2];
        x[0] = (uint32_t)(product1 >> 32) ^ x[1] ^ key0;
        x[1] = (uint32_t)product1;
        x[2] = (uint32_t)(product0 >> 32) ^ x[3] ^ key1;
        x[3] = (uint32_t)product0;
        key0 += WEYL_0;
        key1 += WEYL_1;
    }
    memcpy(words, x, sizeof x);
}

void random_draw(uint64_t seed, enum random_purpose purpose, int64_t a, int64_t b,
                 uint32_t words[4])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)b, (uint32_t)((uint64_t)b >> 32), (uint32_t)a,
                                 (uint32_t)purpose};
    random_philox(key, counter, words);
}

uint32_t random_below(uint32_t word, int64_t limit)
{
    return (uint32_t)(((uint64_t)word * (uint64_t)limit) >> 32);
}
