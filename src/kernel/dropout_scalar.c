#include "kernel/dropout_scalar.h"

#include <string.h>

/* One round: both products are cut in halves; the lower ones go on as they are, the upper ones mix
 * with the two words that were not multiplied, and with the key. */
static void philox_round(uint32_t x[PHILOX_WORDS], uint32_t key_0, uint32_t key_1)
{
    uint64_t first = (uint64_t)x[0] * PHILOX_FACTOR_0;
    uint64_t second = (uint64_t)x[2] * PHILOX_FACTOR_1;
    x[0] = (uint32_t)(second >> 32) ^ x[1] ^ key_0;
    x[1] = (uint32_t)second;
    x[2] = (uint32_t)(first >> 32) ^ x[3] ^ key_1;
    x[3] = (uint32_t)first;
}

void attn_philox(const uint32_t counter[PHILOX_WORDS], const uint32_t key[2],
                 uint32_t words[PHILOX_WORDS])
{
    uint32_t x[PHILOX_WORDS];
    memcpy(x, counter, sizeof x);
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++)
        philox_round(x, key[0] + round * PHILOX_STEP_0, key[1] + round * PHILOX_STEP_1);
    memcpy(words, x, sizeof x);
}

void attn_dropout_scalar(const struct attn_dropout_place *place, int lanes, int64_t keys,
                         float *factors)
{
    const uint32_t key[2] = {(uint32_t)place->seed, (uint32_t)(place->seed >> 32)};
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++) {
            uint32_t column = place->key + (uint32_t)j, words[PHILOX_WORDS];
            const uint32_t counter[PHILOX_WORDS] = {column / PHILOX_WORDS, place->row + (uint32_t)n,
                                                    place->head, place->batch};
            attn_philox(counter, key, words);
            bool kept = words[column % PHILOX_WORDS] >= place->threshold;
            factors[j * lanes + n] = kept ? place->kept : 0.0f;
        }
}

void attn_multiply_scalar(float *x, const float *factors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= factors[i];
}
