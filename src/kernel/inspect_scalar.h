/* The kernels of inspect_kernels.h in plain C. */
#ifndef ATTN_KERNEL_INSPECT_SCALAR_H
#define ATTN_KERNEL_INSPECT_SCALAR_H

#include "kernel/inspect_kernels.h"

extern const struct attn_inspect_kernels attn_inspect_kernels_scalar;

#endif
