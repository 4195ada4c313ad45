/* Dropout as attn.h defines it, one weight at a time. */
#ifndef ATTN_TESTS_HARNESS_REFERENCE_DROPOUT_H
#define ATTN_TESTS_HARNESS_REFERENCE_DROPOUT_H

#include <stdint.h>

#include "attn.h"

/* What the weight of this place is multiplied by: 0, or 1/(1 − dropout); 1 without dropout.
 * `sequence` is the batch or the packed sequence, in which query and key count from 0. */
double reference_dropout_factor(const attn_params *params, int64_t sequence, int64_t head,
                                int64_t query, int64_t key);

/* Philox4x32-10: J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). */
void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

#endif
