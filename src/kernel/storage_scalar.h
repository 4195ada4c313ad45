/* Stored elements in plain C, by whole numbers alone where a format is narrower than f32, so that
 * no floating-point mode has a say. The SIMD units give the same bits. */
#ifndef ATTN_KERNEL_STORAGE_SCALAR_H
#define ATTN_KERNEL_STORAGE_SCALAR_H

#include "kernel/kernel.h"

/* As widen and narrow of kernel.h. */
void attn_widen_scalar(enum attn_storage from, const void *x, float scale, int64_t count, float *y);
void attn_narrow_scalar(enum attn_storage to, const float *x, int64_t count, void *y);

#endif
