/* The layers around attention in plain C: what layers_body.inc is measured against. */
#ifndef ATTN_KERNEL_LAYERS_SCALAR_H
#define ATTN_KERNEL_LAYERS_SCALAR_H

#include "kernel/kernel.h"

/* As the functions of kernel.h with these names. */
void attn_activate_scalar(enum attn_activation activation, const float *x, const float *bias,
                          int64_t rows, int64_t width, float *y);
void attn_activate_backward_scalar(enum attn_activation activation, const float *x, const float *dy,
                                   int64_t count, float *dx);
void attn_swiglu_scalar(const float *gate, const float *up, int64_t count, float *y);
void attn_swiglu_backward_scalar(const float *gate, const float *up, const float *dy, int64_t count,
                                 float *d_gate, float *d_up);
void attn_layer_norm_scalar(const float *x, const float *bias, const float *gain,
                            const float *shift, float epsilon, int64_t rows, int64_t width,
                            float *y);
void attn_layer_norm_backward_scalar(const struct attn_norm_gradient *gradient, float epsilon,
                                     int64_t rows, int64_t width);
void attn_rms_norm_scalar(const float *x, const float *gain, float epsilon, int64_t rows,
                          int64_t width, float *y);
void attn_rms_norm_backward_scalar(const struct attn_norm_gradient *gradient, float epsilon,
                                   int64_t rows, int64_t width);
double attn_cross_entropy_scalar(const float *logits, int64_t classes, int64_t label, float scale,
                                 float *gradient);

#endif
