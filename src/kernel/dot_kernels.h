/* Products of bf16 pairs with sums in f32 (Intel's VDPBF16PS, or TDPBF16PS of AMX): what a caller
 * gets who allows ATTN_PRECISION_BF16. Panels are those of kernel.h, but for
 *   queries  [⌈d_qk/2⌉][lanes]              pairs of neighbours along d, the lower element in the
 *                                           lower half; an odd d is filled up with 0
 *   weights  [ATTN_KEY_BLOCK / 2][lanes]    pairs of neighbours along the keys of a block
 *   values   [ATTN_KEY_BLOCK / 2][d_v]      a block's rows of V in pairs, in an order that is the
 *                                           kernels' own
 * Weights and values are those of a whole block of keys: `first` is the place of a tile's first key
 * in its block, a multiple of ATTN_KEY_STEP, and first + keys ≤ ATTN_KEY_BLOCK. Kernels may sum a
 * block part by part, so that a row has the same bits whatever tile of the block is asked for. */
#ifndef ATTN_KERNEL_DOT_KERNELS_H
#define ATTN_KERNEL_DOT_KERNELS_H

#include <stdint.h>

struct attn_dot_kernels {
    const char *name;  /* of the instructions, for people */
    int panel_vectors; /* of a full panel in the forward pass: 1 or 2, whichever is faster */

    void (*pack_queries)(const uint16_t *q, int64_t row_stride, int64_t dim_stride, int64_t rows,
                         int64_t d, int lanes, uint32_t *panel);

    /* As `scores` of kernel.h. The elements of a key lie side by side, and where d is odd one of
     * any value but NaN and Inf stands behind the last. */
    void (*scores)(const uint32_t *panel, int lanes, int64_t d, const uint16_t *k,
                   int64_t key_stride, int64_t keys, float scale, float *s, float *m);

    /* As `softmax` of kernel.h, but that s stays as it is: the weights go to their places in the
     * block, rounded to bf16. What `accumulate` reads around them becomes 0. */
    void (*softmax)(const float *s, int lanes, int64_t first, int64_t keys, const float *m_old,
                    const float *m_new, float *l, float *l_rest, float *output, int64_t d_v,
                    uint32_t *weights);

    /* Rows of V to their places in the block. What `accumulate` reads around them becomes 0. */
    void (*pack_values)(const uint16_t *v, int64_t value_stride, int64_t first, int64_t keys,
                        int64_t d_v, uint32_t *values);

    /* As `accumulate` of kernel.h, with the weights of just these keys and values of these and any
     * others of the block: the others' are multiplied by 0, or not read. */
    void (*accumulate)(const uint32_t *weights, int lanes, int64_t first, int64_t keys,
                       const uint32_t *values, float *output, int64_t d_v);

    /* Gives back what products leave in the thread (the tiles of AMX), or NULL where they leave
     * nothing: called before a thread goes back to its owner. */
    void (*release)(void);
};

#endif
