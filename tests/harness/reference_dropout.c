#include "harness/reference_dropout.h"

#include <string.h>

void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4])
{
    uint32_t k[2] = {key[0], key[1]};
    memcpy(words, counter, 4 * sizeof *words);
    for (int round = 0; round < 10; round++) {
        uint64_t first = UINT64_C(0xD2511F53) * words[0];
        uint64_t second = UINT64_C(0xCD9E8D57) * words[2];
        words[0] = (uint32_t)(second >> 32) ^ words[1] ^ k[0];
        words[1] = (uint32_t)second;
        words[2] = (uint32_t)(first >> 32) ^ words[3] ^ k[1];
        words[3] = (uint32_t)first;
        k[0] += UINT32_C(0x9E3779B9);
        k[1] += UINT32_C(0xBB67AE85);
    }
}

double reference_dropout_factor(const attn_params *params, int64_t sequence, int64_t head,
                                int64_t query, int64_t key)
{
    if (params->dropout == 0)
        return 1;
    const uint32_t seed[2] = {(uint32_t)params->dropout_seed,
                              (uint32_t)(params->dropout_seed >> 32)};
    const uint32_t counter[4] = {
        (uint32_t)(key / 4), (uint32_t)((uint64_t)query + (uint64_t)params->dropout_query),
        (uint32_t)head, (uint32_t)((uint64_t)sequence + (uint64_t)params->dropout_batch)};
    uint32_t words[4];
    reference_philox(counter, seed, words);
    return words[key % 4] < (double)params->dropout * 0x1p32 ? 0
                                                             : 1 / (1 - (double)params->dropout);
}
