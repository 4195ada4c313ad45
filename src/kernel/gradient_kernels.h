/* What a backward pass needs beside the functions of kernel.h: of its five products
 *     Sᵀ = K·Qᵀ     dPᵀ = V·dOᵀ     dQᵀ += Kᵀ·dSᵀ       lanes are queries: `scores`, `accumulate`
 *     dV += Pᵀ·dO   dK += dSᵀ·Q                         lanes are dims: add_rows
 * none needs a transpose of K or V. Panels are those of kernel.h. */
#ifndef ATTN_KERNEL_GRADIENT_KERNELS_H
#define ATTN_KERNEL_GRADIENT_KERNELS_H

#include <stdint.h>

struct attn_gradient_kernels {
    /* delta[n] = Σ_c a[c][n] · b[c][n]: rowsum(dO∘O) of two panels [d][lanes]. */
    void (*dots)(const float *a, const float *b, int lanes, int64_t d, float *delta);

    /* From final scores s and t = dP, both [keys][lanes], in place:
     *   p = exp(s − m) · inverse_l, exactly 0 where s = −inf or inverse_l = 0
     *   t = p · (t − delta), exactly 0 where s = −inf or inverse_l = 0, whatever t was
     *   s = p
     * m = −inf (a lane without a key) comes with inverse_l = 0. */
    void (*softmax)(float *s, float *t, int lanes, int64_t keys, const float *m,
                    const float *inverse_l, const float *delta);

    /* The same with dropout: `factors` [keys][lanes] is 0 or 1/(1 − rate) (kernel.h's dropout):
     *   t = p · (t · factor − delta)      s = p · factor */
    void (*softmax_dropout)(float *s, float *t, const float *factors, int lanes, int64_t keys,
                            const float *m, const float *inverse_l, const float *delta);

    /* c[j][i] += Σ_{n < rows} a[j][n] · b[n][i] for j < keys, i < width, summed in the order of n.
     * a is a panel [keys][lanes], rows ≤ lanes; b has rows of b_stride floats, and c of c_stride.
     * Rows of c are aligned (ATTN_ALIGNMENT) and c_stride and b_stride are such that whole vectors
     * may be read in b and read and written in c: width rounded up to vector_lanes, where what is
     * behind width in b is any finite number and in c of no meaning. b need not be aligned. */
    void (*add_rows)(const float *a, int lanes, int64_t keys, const float *b, int64_t b_stride,
                     int64_t rows, float *c, int64_t c_stride, int64_t width);
};

/* The same on products of bf16 pairs (dot_kernels.h), where the CPU has them. */
struct attn_dot_gradient_kernels {
    /* Of f32 panels p and ds [keys][lanes] what the products take, rounded to nearest even:
     *   p_rows, ds_rows [keys][lanes] bf16     ds_weights: ds as weights of dot_kernels.h */
    void (*narrow)(const float *p, const float *ds, int lanes, int64_t first, int64_t keys,
                   uint16_t *p_rows, uint16_t *ds_rows, uint32_t *ds_weights);

    /* Rows to pairs of neighbouring rows [⌈count/2⌉][width]; where count is odd the last pair is
     * filled up with 0. */
    void (*pair_rows)(const uint16_t *rows, int64_t row_stride, int64_t count, int64_t width,
                      uint32_t *pairs);

    /* As add_rows, with a [keys][lanes] bf16 and b as pairs of neighbouring rows
     * [⌈rows/2⌉][b_stride]; a is 0 in lanes from rows on. */
    void (*add_rows)(const uint16_t *a, int lanes, int64_t keys, const uint32_t *b,
                     int64_t b_stride, int64_t rows, float *c, int64_t c_stride, int64_t width);
};

#endif
