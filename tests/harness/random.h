/* Repeatable random numbers: the splitmix64 generator (G. Steele, D. Lea, C. Flood, "Fast
 * splittable pseudorandom number generators" (2014)). */
#ifndef ATTN_TESTS_HARNESS_RANDOM_H
#define ATTN_TESTS_HARNESS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_source {
    uint64_t state; /* the seed */
};

uint64_t random_bits(struct random_source *source);
/* low ≤ x ≤ high */
int64_t random_integer(struct random_source *source, int64_t low, int64_t high);
float random_float(struct random_source *source, float low, float high);
void random_floats(struct random_source *source, float low, float high, float *floats,
                   size_t count);

#endif
