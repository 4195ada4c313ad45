/* bf16 numbers for tests of products of pairs. */
#ifndef ATTN_TESTS_HALVES_H
#define ATTN_TESTS_HALVES_H

#include "harness/guarded.h"
#include "harness/random.h"

/* To nearest even; and back, exactly. */
uint16_t rounded_half(float x);
double half_value(uint16_t half);

/* `count` numbers in −2..2; guarded memory of the test. */
uint16_t *random_halves(struct random_source *source, int64_t count, enum guard_side side);

#endif
