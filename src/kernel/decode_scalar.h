/* The kernels of decode in plain C: what decode_body.inc is measured against. */
#ifndef ATTN_KERNEL_DECODE_SCALAR_H
#define ATTN_KERNEL_DECODE_SCALAR_H

#include "kernel/decode_kernels.h"

extern const struct attn_decode_kernels attn_decode_kernels_scalar;

#endif
