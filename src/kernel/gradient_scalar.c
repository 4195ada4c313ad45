/* The backward pass of softmax attention, for one query n with the weights p_j = exp(s_j − m) / l
 * and the output o = Σ_j p_j v_j (T. Dao et al., "FlashAttention" (2022), appendix B.2):
 *
 *     dv_j += p_j · do        dp_j = do·v_j        D = do·o = Σ_j p_j dp_j
 *     ds_j  = p_j · (dp_j − D)                     dk_j += ds_j · q        dq = Σ_j ds_j k_j
 *
 * With dropout, o = Σ_j z_j p_j v_j of random factors z_j: then dv_j += z_j p_j · do and ds_j = p_j
 * · (z_j dp_j − D), with the same D = do·o. */
#include "kernel/gradient_scalar.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static void dots_scalar(const float *a, const float *b, int lanes, int64_t d, float *delta)
{
    for (int n = 0; n < lanes; n++)
        delta[n] = 0.0f;
    for (int64_t c = 0; c < d; c++)
        for (int n = 0; n < lanes; n++)
            delta[n] += a[c * lanes + n] * b[c * lanes + n];
}

static void softmax_dropout_scalar(float *s, float *t, const float *factors, int lanes,
                                   int64_t keys, const float *m, const float *inverse_l,
                                   const float *delta)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++) {
            float *p = &s[j * lanes + n], *ds = &t[j * lanes + n];
            float factor = factors ? factors[j * lanes + n] : 1.0f;
            bool excluded = *p == -INFINITY || inverse_l[n] == 0.0f;
            float weight = excluded ? 0.0f : expf(*p - m[n]) * inverse_l[n];
            *ds = excluded ? 0.0f : weight * (*ds * factor - delta[n]);
            *p = weight * factor;
        }
}

static void softmax_scalar(float *s, float *t, int lanes, int64_t keys, const float *m,
                           const float *inverse_l, const float *delta)
{
    softmax_dropout_scalar(s, t, NULL, lanes, keys, m, inverse_l, delta);
}

static void add_rows_scalar(const float *a, int lanes, int64_t keys, const float *b,
                            int64_t b_stride, int64_t rows, float *c, int64_t c_stride,
                            int64_t width)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t n = 0; n < rows; n++)
            for (int64_t i = 0; i < width; i++)
                c[j * c_stride + i] += a[j * lanes + n] * b[n * b_stride + i];
}

const struct attn_gradient_kernels attn_gradient_kernels_scalar = {
    .dots = dots_scalar,
    .softmax = softmax_scalar,
    .softmax_dropout = softmax_dropout_scalar,
    .add_rows = add_rows_scalar,
};
