/* Dropout (N. Srivastava et al., 2014): while learning, numbers are left out at random and the rest
 * made larger, so that the expectation stays. */
#ifndef ATTN_NN_DROPOUT_H
#define ATTN_NN_DROPOUT_H

#include <stdint.h>

#include "nn/compute.h"

struct dropout {
    float rate;        /* 0: nothing is changed; < 1 */
    uint64_t seed;     /* of this place in the network and this step */
    int64_t first_row; /* of row 0, in the whole batch: parts of a batch draw what the whole does */
};

/* The 64-bit seed of one place in one step: no two of one seed are the same while place < 2¹⁶ and
 * step < 2⁴⁸, both ≥ 0. */
uint64_t dropout_seed(uint64_t seed, int64_t step, int64_t place);

/* y[rows][width] = x∘mask/(1 − rate); y may be x. Backward is the same call on the gradient. The
 * mask is Philox4x32-10's (J. Salmon et al., 2011): key = seed, counter = (c div 4, row low, row
 * high, 0), word c mod 4, kept iff word ≥ rate·2³². */
void dropout_apply(const struct compute *compute, const struct dropout *dropout, int64_t rows,
                   int64_t width, const float *x, float *y);

#endif
