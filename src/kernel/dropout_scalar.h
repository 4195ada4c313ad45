/* Random factors in plain C: what dropout_body.inc is measured against. Arguments as in kernel.h;
 * any number of lanes.
 *
 * Philox4x32-10 makes four random words of a counter of four and a key of two (J. Salmon, M.
 * Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011)): any place of the
 * matrix of weights has its factor without those before it. */
#ifndef ATTN_KERNEL_DROPOUT_SCALAR_H
#define ATTN_KERNEL_DROPOUT_SCALAR_H

#include "kernel/kernel.h"

enum { PHILOX_ROUNDS = 10, PHILOX_WORDS = 4 };

/* What the counter is multiplied by, and what is added to the key from round to round. */
#define PHILOX_FACTOR_0 UINT32_C(0xd2511f53)
#define PHILOX_FACTOR_1 UINT32_C(0xcd9e8d57)
#define PHILOX_STEP_0   UINT32_C(0x9e3779b9)
#define PHILOX_STEP_1   UINT32_C(0xbb67ae85)

/* The four words that belong to a counter and a key. */
void attn_philox(const uint32_t counter[PHILOX_WORDS], const uint32_t key[2],
                 uint32_t words[PHILOX_WORDS]);

void attn_dropout_scalar(const struct attn_dropout_place *place, int lanes, int64_t keys,
                         float *factors);
void attn_multiply_scalar(float *x, const float *factors, int64_t count);

#endif
