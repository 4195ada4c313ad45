/* Products of bf16 pairs with sums in f32 (Intel's VDPBF16PS): what a caller gets who allows
 * ATTN_PRECISION_BF16. Panels are those of kernel.h, but for
 *   queries  [⌈d_qk/2⌉][lanes]   pairs of neighbours along d, the lower element in the lower half;
 *                                an odd d is filled up with 0
 *   weights  [⌈keys/2⌉][lanes]   pairs of neighbours along the keys
 *   values   [⌈keys/2⌉][d_v]     pairs of neighbours along the keys */
#ifndef ATTN_KERNEL_DOT_KERNELS_H
#define ATTN_KERNEL_DOT_KERNELS_H

#include <stdint.h>

struct attn_dot_kernels {
    void (*pack_queries)(const uint16_t *q, int64_t row_stride, int64_t dim_stride, int64_t rows,
                         int64_t d, int lanes, uint32_t *panel);

    /* As `scores` of kernel.h. The elements of a key lie side by side, and where d is odd one of
     * any value but NaN and Inf stands behind the last. */
    void (*scores)(const uint32_t *panel, int lanes, int64_t d, const uint16_t *k,
                   int64_t key_stride, int64_t keys, float scale, float *s, float *m);

    /* As `softmax` of kernel.h, but that s stays as it is: pairs[] are the weights, rounded to
     * bf16; where keys is odd the last pair is filled up with 0. */
    void (*softmax)(const float *s, int lanes, int64_t keys, const float *m_old, const float *m_new,
                    float *l, float *l_rest, float *output, int64_t d_v, uint32_t *pairs);

    /* Rows of V to pairs; where keys is odd the last pair is filled up with 0. */
    void (*pair_values)(const uint16_t *v, int64_t value_stride, int64_t keys, int64_t d_v,
                        uint32_t *pairs);

    void (*accumulate)(const uint32_t *weights, int lanes, int64_t keys, const uint32_t *values,
                       float *output, int64_t d_v);
};

#endif
