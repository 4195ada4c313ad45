/* Products of bf16 pairs on AVX512_BF16 in the backward pass: what gradient_kernels.h asks for. The
 * tiles of add_rows are those of gradient_body.inc with pairs along the queries: 32 bits of a row
 * of weights are two neighbours, and rows of dO and Q stand in pairs. */
#if !defined(ATTN_EMULATE_AVX512) && !(defined(__AVX512F__) && defined(__AVX512BF16__))
#error "compile this file with -mavx512f -mavx512bf16"
#endif

#include "kernel/gradient_kernels.h"

#include <string.h>

#include "kernel/compiler.h"
#include "kernel/kernel_table.h"
#include "kernel/vector_avx512.h"

#include "kernel/bf16_pairs_body.inc"

enum { TILE = 12 }; /* as in avx512.c */

static void narrow(const float *p, const float *ds, int lanes, int64_t first, int64_t keys,
                   uint16_t *p_rows, uint16_t *ds_rows, uint32_t *ds_weights)
{
    round_panel(p, keys * lanes, p_rows);
    round_panel(ds, keys * lanes, ds_rows);
    pair_rows(ds_rows, lanes, keys, lanes, ds_weights + first / 2 * lanes);
}

ALWAYS_INLINE void row_tile(int count, int width, const uint16_t *restrict a, int64_t lanes,
                            const uint32_t *restrict b, int64_t b_stride, int64_t pairs,
                            float *restrict c, int64_t c_stride)
{
    vector sum[2 * TILE];
    UNROLL
    for (int r = 0; r < count; r++)
        for (int part = 0; part < width; part++)
            sum[r * width + part] = vector_load_aligned(c + r * c_stride + part * VECTOR_LANES);
    for (int64_t n = 0; n < pairs; n++) {
        __m512bh row[2];
        for (int part = 0; part < width; part++)
            row[part] = load_pairs(b + n * b_stride + part * VECTOR_LANES);
        UNROLL
        for (int r = 0; r < count; r++) {
            __m512bh element = broadcast_pair(a + r * lanes + 2 * n);
            for (int part = 0; part < width; part++)
                sum[r * width + part] = _mm512_dpbf16_ps(sum[r * width + part], element, row[part]);
        }
    }
    UNROLL
    for (int r = 0; r < count; r++)
        for (int part = 0; part < width; part++)
            vector_store_aligned(c + r * c_stride + part * VECTOR_LANES, sum[r * width + part]);
}

ALWAYS_INLINE void row_tiles(int width, const uint16_t *a, int64_t lanes, int64_t keys,
                             const uint32_t *b, int64_t b_stride, int64_t pairs, float *c,
                             int64_t c_stride)
{
    int64_t j = 0;
    for (; j + TILE <= keys; j += TILE)
        row_tile(TILE, width, a + j * lanes, lanes, b, b_stride, pairs, c + j * c_stride, c_stride);
    for (; j + 4 <= keys; j += 4)
        row_tile(4, width, a + j * lanes, lanes, b, b_stride, pairs, c + j * c_stride, c_stride);
    for (; j < keys; j++)
        row_tile(1, width, a + j * lanes, lanes, b, b_stride, pairs, c + j * c_stride, c_stride);
}

static void add_rows(const uint16_t *a, int lanes, int64_t keys, const uint32_t *b,
                     int64_t b_stride, int64_t rows, float *c, int64_t c_stride, int64_t width)
{
    int64_t pairs = (rows + 1) / 2, i = 0;
    for (; i + VECTOR_LANES < width; i += 2 * VECTOR_LANES)
        row_tiles(2, a, lanes, keys, b + i, b_stride, pairs, c + i, c_stride);
    if (i < width)
        row_tiles(1, a, lanes, keys, b + i, b_stride, pairs, c + i, c_stride);
}

const struct attn_dot_gradient_kernels attn_dot_gradient_kernels_avx512 = {
    .narrow = narrow,
    .pair_rows = pair_rows,
    .add_rows = add_rows,
};
