/* The attention functions of kernel.h in plain C: the reference, and what runs where no SIMD unit
 * does. One lane is one query, so each loop body below is the formula for one query n:
 *
 *     s_j = scale · q·k_j        m = max_j s_j        p_j = exp(s_j − m)
 *     l   = Σ_j p_j              o = Σ_j p_j v_j / l
 *
 * taken block by block: when a block raises m to m', what was summed before is multiplied by
 * exp(m − m') (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax" (2018), eq.
 * 3). */
#include "kernel/kernel_table.h"

#include <math.h>

#include "kernel/decode_scalar.h"
#include "kernel/dropout_scalar.h"
#include "kernel/edit_scalar.h"
#include "kernel/gradient_scalar.h"
#include "kernel/inspect_scalar.h"
#include "kernel/layers_scalar.h"
#include "kernel/matrix_scalar.h"
#include "kernel/storage_scalar.h"

enum { VECTOR_LANES = 4 };

static void pack_queries_scalar(const float *q, int64_t row_stride, int64_t dim_stride,
                                int64_t rows, int64_t d, int lanes, float *panel)
{
    for (int64_t c = 0; c < d; c++)
        for (int64_t n = 0; n < lanes; n++)
            panel[c * lanes + n] = n < rows ? q[n * row_stride + c * dim_stride] : 0.0f;
}

static void raise_maximum_scalar(const float *s, int lanes, int64_t keys, float *m)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++)
            if (s[j * lanes + n] > m[n])
                m[n] = s[j * lanes + n];
}

static void scores_scalar(const float *panel, int lanes, int64_t d, const float *k,
                          int64_t key_stride, int64_t keys, float scale, float *s, float *m)
{
    for (int64_t j = 0; j < keys; j++) {
        const float *key = k + j * key_stride;
        float sum[2 * VECTOR_LANES] = {0};
        for (int64_t c = 0; c < d; c++)
            for (int n = 0; n < lanes; n++)
                sum[n] += panel[c * lanes + n] * key[c];
        for (int n = 0; n < lanes; n++)
            s[j * lanes + n] = scale * sum[n];
    }
    raise_maximum_scalar(s, lanes, keys, m);
}

/* exp(s − m), where a lane that has seen no key has m = −inf, and −inf − (−inf) is not a number. */
static float weight_before_sum(float s, float m)
{
    return s == -INFINITY ? 0.0f : expf(s - m);
}

static void softmax_scalar(float *s, int lanes, int64_t keys, const float *m_old,
                           const float *m_new, float *l, float *l_rest, float *output, int64_t d_v)
{
    for (int n = 0; n < lanes; n++) {
        float correction = weight_before_sum(m_old[n], m_new[n]);
        for (int64_t c = 0; c < d_v; c++)
            output[c * lanes + n] *= correction;

        /* In double the few sums of a block lose nothing that shows in float. */
        double sum = ((double)l[n] + (double)l_rest[n]) * (double)correction;
        for (int64_t j = 0; j < keys; j++) {
            s[j * lanes + n] = weight_before_sum(s[j * lanes + n], m_new[n]);
            sum += (double)s[j * lanes + n];
        }
        l[n] = (float)sum;
        l_rest[n] = (float)(sum - (double)l[n]);
    }
}

static void accumulate_scalar(const float *s, int lanes, int64_t keys, const float *v,
                              int64_t value_stride, float *output, int64_t d_v)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t c = 0; c < d_v; c++)
            for (int n = 0; n < lanes; n++)
                output[c * lanes + n] += s[j * lanes + n] * v[j * value_stride + c];
}

static uint32_t normalise_scalar(float *output, int lanes, int64_t d_v, const float *l,
                                 int64_t rows)
{
    uint32_t broken = 0;
    for (int64_t c = 0; c < d_v; c++)
        for (int64_t n = 0; n < lanes; n++) {
            float *o = &output[c * lanes + n];
            *o = l[n] == 0.0f ? 0.0f : *o / l[n];
            if (n < rows && isfinite(l[n]) && !isfinite(*o))
                broken |= UINT32_C(1) << n;
        }
    return broken;
}

static void unpack_output_scalar(const float *panel, int lanes, int64_t d, float *o,
                                 int64_t row_stride, int64_t dim_stride, int64_t rows)
{
    for (int64_t c = 0; c < d; c++)
        for (int64_t n = 0; n < rows; n++)
            o[n * row_stride + c * dim_stride] = panel[c * lanes + n];
}

static void weights_scalar(float *s, int lanes, int64_t keys, const float *m, const float *l)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++) {
            float *w = &s[j * lanes + n];
            *w = *w == -INFINITY || l[n] == 0.0f ? 0.0f : expf(*w - m[n]) / l[n];
        }
}

const struct attn_kernels attn_kernels_scalar = {
    .isa = ATTN_ISA_SCALAR,
    .vector_lanes = VECTOR_LANES,
    .pack_queries = pack_queries_scalar,
    .scores = scores_scalar,
    .raise_maximum = raise_maximum_scalar,
    .softmax = softmax_scalar,
    .accumulate = accumulate_scalar,
    .normalise = normalise_scalar,
    .unpack_output = unpack_output_scalar,
    .weights = weights_scalar,
    .soft_cap = attn_soft_cap_scalar,
    .add_bias = attn_add_bias_scalar,
    .subtract_distance = attn_subtract_distance_scalar,
    .exclude = attn_exclude_scalar,
    .exclusion_words = attn_exclusion_words_scalar,
    .dropout = attn_dropout_scalar,
    .multiply = attn_multiply_scalar,
    .widen = attn_widen_scalar,
    .narrow = attn_narrow_scalar,
    .decode = &attn_decode_kernels_scalar,
    .matrices = &attn_matrix_kernels_scalar,
    .gradients = &attn_gradient_kernels_scalar,
    .inspect = &attn_inspect_kernels_scalar,
    .activate = attn_activate_scalar,
    .activate_backward = attn_activate_backward_scalar,
    .swiglu = attn_swiglu_scalar,
    .swiglu_backward = attn_swiglu_backward_scalar,
    .layer_norm = attn_layer_norm_scalar,
    .rms_norm = attn_rms_norm_scalar,
    .layer_norm_backward = attn_layer_norm_backward_scalar,
    .rms_norm_backward = attn_rms_norm_backward_scalar,
    .cross_entropy = attn_cross_entropy_scalar,
};
