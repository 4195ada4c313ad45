/* Random factors in plain C: what dropout_body.inc is measured against. Arguments as in kernel.h;
 * any number of lanes. */
#ifndef ATTN_KERNEL_DROPOUT_SCALAR_H
#define ATTN_KERNEL_DROPOUT_SCALAR_H

#include "kernel/kernel.h"

void attn_dropout_scalar(const struct attn_dropout_place *place, int lanes, int64_t keys,
                         float *factors);
void attn_multiply_scalar(float *x, const float *factors, int64_t count);

#endif
