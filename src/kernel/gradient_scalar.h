/* The kernels of gradient_kernels.h in plain C: the reference. */
#ifndef ATTN_KERNEL_GRADIENT_SCALAR_H
#define ATTN_KERNEL_GRADIENT_SCALAR_H

#include "kernel/gradient_kernels.h"

extern const struct attn_gradient_kernels attn_gradient_kernels_scalar;

#endif
