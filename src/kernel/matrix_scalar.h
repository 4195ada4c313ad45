/* Stored matrices in plain C: what matrix_body.inc is measured against. */
#ifndef ATTN_KERNEL_MATRIX_SCALAR_H
#define ATTN_KERNEL_MATRIX_SCALAR_H

#include "kernel/matrix_kernels.h"

extern const struct attn_matrix_kernels attn_matrix_kernels_scalar;

#endif
