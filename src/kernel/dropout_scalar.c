#include "kernel/dropout_scalar.h"

#include "base/philox.h"

void attn_dropout_scalar(const struct attn_dropout_place *place, int lanes, int64_t keys,
                         float *factors)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++) {
            uint32_t column = place->key + (uint32_t)j, words[PHILOX_WORDS];
            const uint32_t counter[PHILOX_WORDS] = {column / PHILOX_WORDS, place->row + (uint32_t)n,
                                                    place->head, place->batch};
            attn_philox(place->seed, counter, words);
            bool kept = words[column % PHILOX_WORDS] >= place->threshold;
            factors[j * lanes + n] = kept ? place->kept : 0.0f;
        }
}

void attn_multiply_scalar(float *x, const float *factors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= factors[i];
}
