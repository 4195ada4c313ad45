/* AdamW (I. Loshchilov, F. Hutter, 2019, algorithm 2): steps of a size of their own for each
 * number, by the mean and the mean square of its past gradients. */
#ifndef ATTN_TRAIN_OPTIMIZER_H
#define ATTN_TRAIN_OPTIMIZER_H

#include "model/parameters.h"
#include "nn/compute.h"

struct optimizer_settings {
    double beta1, beta2; /* how slowly the two means forget; 0 ≤ β < 1 */
    double epsilon;      /* > 0: keeps the quotient finite where gradients are 0 */
    double decay; /* of matrices, λ of the paper: each step takes rate·decay of them away */
};

struct optimizer {
    struct optimizer_settings settings;
    int64_t steps; /* done: the means are corrected by it */
    int64_t count; /* as in the parameters, whose layout the means have */
    float *first;  /* mean of gradients, m of the paper */
    float *second; /* mean of their squares, v */
    struct optimizer_block *blocks;
    int64_t block_count;
};

/* Means of 0 and no step done. The parameters are complete. Memory is 8 bytes a number. */
bool optimizer_create(struct optimizer *optimizer, const struct parameters *parameters,
                      const struct optimizer_settings *settings, struct attn_error *error);
void optimizer_destroy(struct optimizer *optimizer); /* zeros are allowed */

/* One step down along gradient_factor·gradient, with the rate of this step (the schedule's times
 * the peak). Decay acts on matrices (rank 2) only, and not through the gradient. The same bits for
 * any number of threads. `parameters` are those of optimizer_create. */
void optimizer_step(struct optimizer *optimizer, struct parameters *parameters,
                    const struct compute *compute, double rate, double gradient_factor);

#endif
