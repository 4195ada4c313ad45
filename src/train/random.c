#include "train/random.h"

#include "base/philox.h"

void random_draw(uint64_t seed, enum random_purpose purpose, int64_t a, int64_t b,
                 uint32_t words[4])
{
    const uint32_t counter[PHILOX_WORDS] = {(uint32_t)b, (uint32_t)((uint64_t)b >> 32), (uint32_t)a,
                                            (uint32_t)purpose};
    attn_philox(seed, counter, words);
}

uint32_t random_below(uint32_t word, int64_t limit)
{
    return (uint32_t)(((uint64_t)word * (uint64_t)limit) >> 32);
}
