/* The tables that exist; which one a context takes is decided in kernel_table.c. */
#ifndef ATTN_KERNEL_KERNEL_TABLE_H
#define ATTN_KERNEL_KERNEL_TABLE_H

#include "kernel/kernel.h"

extern const struct attn_kernels attn_kernels_scalar;

#if defined(__x86_64__)
extern const struct attn_kernels attn_kernels_avx2;
extern const struct attn_kernels attn_kernels_avx512;
/* The same with .dots and .dot_gradients. */
extern const struct attn_kernels attn_kernels_avx512_bf16;
extern const struct attn_dot_kernels attn_dot_kernels_avx512;
extern const struct attn_dot_gradient_kernels attn_dot_gradient_kernels_avx512;
#if defined(ATTN_WITH_AMX)
extern const struct attn_kernels attn_kernels_avx512_amx;
extern const struct attn_dot_kernels attn_dot_kernels_amx;
extern const struct attn_dot_gradient_kernels attn_dot_gradient_kernels_amx;
#endif
#elif defined(__aarch64__)
extern const struct attn_kernels attn_kernels_neon;
#endif

#endif
