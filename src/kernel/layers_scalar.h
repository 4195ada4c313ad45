/* The layers around attention in plain C: what layers_body.inc is measured against. */
#ifndef ATTN_KERNEL_LAYERS_SCALAR_H
#define ATTN_KERNEL_LAYERS_SCALAR_H

#include <stdint.h>

/* As bias_gelu and layer_norm of kernel.h. */
void attn_bias_gelu_scalar(float *x, const float *bias, int64_t rows, int64_t width);
void attn_layer_norm_scalar(const float *x, const float *bias, const float *gain,
                            const float *shift, float epsilon, int64_t rows, int64_t width,
                            float *y);

#endif
