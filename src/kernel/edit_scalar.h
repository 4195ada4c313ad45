/* What changes scores between Q·Kᵀ and the softmax, in plain C: what edit_body.inc is measured
 * against. Arguments as in kernel.h; any number of lanes. */
#ifndef ATTN_KERNEL_EDIT_SCALAR_H
#define ATTN_KERNEL_EDIT_SCALAR_H

#include <stdint.h>

void attn_soft_cap_scalar(float *x, int64_t count, float cap);
void attn_add_bias_scalar(float *s, int lanes, int64_t keys, const float *bias,
                          int64_t query_stride, int64_t key_stride, int64_t rows);
void attn_subtract_distance_scalar(float *s, int lanes, int64_t keys, float slope, int64_t first);
void attn_exclude_scalar(float *s, int lanes, int64_t keys, const uint32_t *excluded);
void attn_exclusion_words_scalar(const unsigned char *keep, int64_t count, uint32_t *words);

#endif
