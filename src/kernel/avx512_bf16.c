/* Products of bf16 pairs on AVX512_BF16: what dot_kernels.h asks for. The tiles are those of
 * attention_body.inc with pairs along the summed axis, so that each instruction takes two products
 * a lane: K is read in its natural rows, two neighbours of a row at a time; V in rows of pairs. */
#if !defined(ATTN_EMULATE_AVX512) && !(defined(__AVX512F__) && defined(__AVX512BF16__))
#error "compile this file with -mavx512f -mavx512bf16"
#endif

#include "kernel/dot_kernels.h"

#include <math.h>
#include <string.h>

#include "kernel/compiler.h"
#include "kernel/kernel_table.h"
#include "kernel/vector_avx512.h"

#include "kernel/bf16_pairs_body.inc"
#include "kernel/exp_table_body.inc"
#include "kernel/online_softmax_body.inc"

#include "kernel/bf16_panels_body.inc"

enum { TILE = 12 }; /* as in avx512.c */

ALWAYS_INLINE void score_tile(int count, int width, const uint32_t *restrict panel, int64_t pairs,
                              const uint16_t *restrict k, int64_t key_stride, vector scale,
                              float *restrict s, vector maximum[2])
{
    const int lanes = width * VECTOR_LANES;
    vector sum[2 * TILE];
    UNROLL
    for (int r = 0; r < count * width; r++)
        sum[r] = vector_zero();
    for (int64_t c = 0; c < pairs; c++) {
        __m512bh q[2];
        for (int part = 0; part < width; part++)
            q[part] = load_pairs(panel + c * lanes + part * VECTOR_LANES);
        UNROLL
        for (int r = 0; r < count; r++) {
            __m512bh element = broadcast_pair(k + r * key_stride + 2 * c);
            for (int part = 0; part < width; part++)
                sum[r * width + part] = _mm512_dpbf16_ps(sum[r * width + part], element, q[part]);
        }
    }
    UNROLL
    for (int r = 0; r < count; r++)
        for (int part = 0; part < width; part++) {
            vector score = vector_multiply(scale, sum[r * width + part]);
            vector_store_aligned(s + r * lanes + part * VECTOR_LANES, score);
            maximum[part] = vector_maximum(score, maximum[part]);
        }
}

ALWAYS_INLINE void score_tiles(int width, const uint32_t *panel, int64_t d, const uint16_t *k,
                               int64_t key_stride, int64_t keys, float scale, float *s, float *m)
{
    const int lanes = width * VECTOR_LANES;
    const vector factor = vector_set(scale);
    vector maximum[2];
    for (int part = 0; part < width; part++)
        maximum[part] = vector_load_aligned(m + part * VECTOR_LANES);
    int64_t j = 0;
    for (; j + TILE <= keys; j += TILE)
        score_tile(TILE, width, panel, (d + 1) / 2, k + j * key_stride, key_stride, factor,
                   s + j * lanes, maximum);
    for (; j + 4 <= keys; j += 4)
        score_tile(4, width, panel, (d + 1) / 2, k + j * key_stride, key_stride, factor,
                   s + j * lanes, maximum);
    for (; j < keys; j++)
        score_tile(1, width, panel, (d + 1) / 2, k + j * key_stride, key_stride, factor,
                   s + j * lanes, maximum);
    for (int part = 0; part < width; part++)
        vector_store_aligned(m + part * VECTOR_LANES, maximum[part]);
}

static void scores(const uint32_t *panel, int lanes, int64_t d, const uint16_t *k,
                   int64_t key_stride, int64_t keys, float scale, float *s, float *m)
{
    if (lanes == VECTOR_LANES)
        score_tiles(1, panel, d, k, key_stride, keys, scale, s, m);
    else
        score_tiles(2, panel, d, k, key_stride, keys, scale, s, m);
}

static void softmax(const float *s, int lanes, int64_t first, int64_t keys, const float *m_old,
                    const float *m_new, float *l, float *l_rest, float *output, int64_t d_v,
                    uint32_t *weights)
{
    write_weights(s, lanes, first, keys, m_old, m_new, l, l_rest, output, d_v, weights);
}

/* [ATTN_KEY_BLOCK / 2][d_v] pairs of neighbours along the keys. */
static void pack_values(const uint16_t *v, int64_t value_stride, int64_t first, int64_t keys,
                        int64_t d_v, uint32_t *values)
{
    pair_rows(v, value_stride, keys, d_v, values + first / 2 * d_v);
}

ALWAYS_INLINE void value_tile(int count, int width, const uint32_t *restrict weights, int64_t pairs,
                              const uint32_t *restrict values, int64_t d_v, float *restrict output)
{
    const int lanes = width * VECTOR_LANES;
    vector sum[2 * TILE];
    UNROLL
    for (int c = 0; c < count; c++)
        for (int part = 0; part < width; part++)
            sum[c * width + part] = vector_load_aligned(output + c * lanes + part * VECTOR_LANES);
    for (int64_t j = 0; j < pairs; j++) {
        __m512bh p[2];
        for (int part = 0; part < width; part++)
            p[part] = load_pairs(weights + j * lanes + part * VECTOR_LANES);
        UNROLL
        for (int c = 0; c < count; c++) {
            __m512bh element = broadcast_pair(values + j * d_v + c);
            for (int part = 0; part < width; part++)
                sum[c * width + part] = _mm512_dpbf16_ps(sum[c * width + part], element, p[part]);
        }
    }
    UNROLL
    for (int c = 0; c < count; c++)
        for (int part = 0; part < width; part++)
            vector_store_aligned(output + c * lanes + part * VECTOR_LANES, sum[c * width + part]);
}

ALWAYS_INLINE void value_tiles(int width, const uint32_t *weights, int64_t pairs,
                               const uint32_t *values, float *output, int64_t d_v)
{
    const int lanes = width * VECTOR_LANES;
    int64_t c = 0;
    for (; c + TILE <= d_v; c += TILE)
        value_tile(TILE, width, weights, pairs, values + c, d_v, output + c * lanes);
    for (; c + 4 <= d_v; c += 4)
        value_tile(4, width, weights, pairs, values + c, d_v, output + c * lanes);
    for (; c < d_v; c++)
        value_tile(1, width, weights, pairs, values + c, d_v, output + c * lanes);
}

static void accumulate(const uint32_t *weights, int lanes, int64_t first, int64_t keys,
                       const uint32_t *values, float *output, int64_t d_v)
{
    weights += first / 2 * lanes;
    values += first / 2 * d_v;
    if (lanes == VECTOR_LANES)
        value_tiles(1, weights, (keys + 1) / 2, values, output, d_v);
    else
        value_tiles(2, weights, (keys + 1) / 2, values, output, d_v);
}

const struct attn_dot_kernels attn_dot_kernels_avx512 = {
    .name = "AVX512_BF16",
    .panel_vectors = 2,
    .pack_queries = pack_queries,
    .scores = scores,
    .softmax = softmax,
    .pack_values = pack_values,
    .accumulate = accumulate,
};
