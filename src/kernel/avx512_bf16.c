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

#include "kernel/exp_table_body.inc"
#include "kernel/online_softmax_body.inc"

enum { TILE = 12 }; /* as in avx512.c */

/* A pair for every lane. */
static inline __m512bh broadcast_pair(const void *pair)
{
    int bits;
    memcpy(&bits, pair, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
}

static inline __m512bh load_pairs(const uint32_t *pairs)
{
    return (__m512bh)_mm512_load_si512((const void *)pairs);
}

/* Lane by lane, `low` in the lower half of a pair and `high` in the upper. */
static inline __m512i pair_up(vector low, vector high)
{
    static const uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), both);
}

static void pack_queries(const uint16_t *q, int64_t row_stride, int64_t dim_stride, int64_t rows,
                         int64_t d, int lanes, uint32_t *panel)
{
    for (int64_t c = 0; c < d; c += 2)
        for (int64_t n = 0; n < lanes; n++) {
            const uint16_t *row = q + n * row_stride;
            uint32_t low = n < rows ? row[c * dim_stride] : 0;
            uint32_t high = n < rows && c + 1 < d ? row[(c + 1) * dim_stride] : 0;
            panel[c / 2 * lanes + n] = low | high << 16;
        }
}

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

static void softmax(const float *s, int lanes, int64_t keys, const float *m_old, const float *m_new,
                    float *l, float *l_rest, float *output, int64_t d_v, uint32_t *pairs)
{
    for (int half = 0; half < lanes; half += VECTOR_LANES) {
        vector maximum = rescale_lanes(lanes, half, m_old, m_new, l, l_rest, output, d_v);
        vector sums[ATTN_KEY_STEP] = {vector_zero(), vector_zero(), vector_zero(), vector_zero()};
        for (int64_t j = 0; j < keys; j += ATTN_KEY_STEP)
            for (int step = 0; step < ATTN_KEY_STEP && j + step < keys; step += 2) {
                const float *score = s + (j + step) * lanes + half;
                vector low = weight_of(score, maximum);
                vector high =
                    j + step + 1 < keys ? weight_of(score + lanes, maximum) : vector_zero();
                sums[step] = vector_add(sums[step], low);
                sums[step + 1] = vector_add(sums[step + 1], high);
                _mm512_store_si512((void *)(pairs + (j + step) / 2 * lanes + half),
                                   pair_up(low, high));
            }
        add_block_sums(sums, l + half, l_rest + half);
    }
}

static void pair_values(const uint16_t *v, int64_t value_stride, int64_t keys, int64_t d_v,
                        uint32_t *pairs)
{
    for (int64_t j = 0; j < keys; j += 2) {
        const uint16_t *low = v + j * value_stride, *high = low + value_stride;
        uint32_t *row = pairs + j / 2 * d_v;
        if (j + 1 < keys)
            for (int64_t c = 0; c < d_v; c++)
                row[c] = low[c] | (uint32_t)high[c] << 16;
        else
            for (int64_t c = 0; c < d_v; c++)
                row[c] = low[c];
    }
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

static void accumulate(const uint32_t *weights, int lanes, int64_t keys, const uint32_t *values,
                       float *output, int64_t d_v)
{
    if (lanes == VECTOR_LANES)
        value_tiles(1, weights, (keys + 1) / 2, values, output, d_v);
    else
        value_tiles(2, weights, (keys + 1) / 2, values, output, d_v);
}

const struct attn_dot_kernels attn_dot_kernels_avx512 = {
    .pack_queries = pack_queries,
    .scores = scores,
    .softmax = softmax,
    .pair_values = pair_values,
    .accumulate = accumulate,
};
