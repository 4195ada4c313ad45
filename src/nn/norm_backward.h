/* What the backward passes of layer norm and RMS norm have in common: rows shared over threads, and
 * the sums over rows for what all rows share. */
#ifndef ATTN_NN_NORM_BACKWARD_H
#define ATTN_NN_NORM_BACKWARD_H

#include "kernel/kernel.h"
#include "nn/compute.h"
#include "nn/gradient.h"

/* A function of kernel.h. */
typedef void norm_backward_kernel(const struct attn_norm_gradient *gradient, float epsilon,
                                  int64_t rows, int64_t width);

/* Runs the kernel on all rows of `gradient`, whose d_gain and d_shift are written or added to by
 * `mode`. The bits of all that is written are the same for any number of threads. false: no memory
 * for the sums; nothing has been written then. */
bool norm_backward(const struct compute *compute, norm_backward_kernel *kernel,
                   const struct attn_norm_gradient *gradient, float epsilon, int64_t rows,
                   int64_t width, enum gradient_mode mode, struct attn_error *error);

#endif
