#include "train/checksum.h"

#include <string.h>

/* One word: each step can be undone, so that two different words never give one sum. */
static uint64_t add_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return sum ^ (sum >> 32);
}

uint64_t checksum_add(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *place = bytes;
    sum = add_word(sum, size);
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), place += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, place, sizeof word);
        sum = add_word(sum, word);
    }
    uint64_t last = 0;
    memcpy(&last, place, size);
    return add_word(sum, last);
}
