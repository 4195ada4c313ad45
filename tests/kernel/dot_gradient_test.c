/* The backward pass on products of bf16 pairs: all functions of attn_dot_gradient_kernels, of each
 * table that the CPU has. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "halves.h"
#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/dot_kernels.h"
#include "kernel/gradient_kernels.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 7, 11, 12, 13, 16, 17, 24, 95, 96};

static void check_narrow(const struct attn_kernels *kernels, int lanes, int64_t first, int64_t keys,
                         enum guard_side side)
{
    struct random_source source = {(uint64_t)keys + 1};
    float *p = random_panel(&source, keys * lanes, side);
    float *ds = random_panel(&source, keys * lanes, side);
    uint16_t *p_rows = guarded_bytes((size_t)(keys * lanes) * 2, 64, side);
    uint16_t *ds_rows = guarded_bytes((size_t)(keys * lanes) * 2, 64, side);
    uint32_t *ds_weights = guarded_bytes((size_t)(ATTN_KEY_BLOCK / 2 * lanes) * 4, 64, side);
    kernels->dot_gradients->narrow(p, ds, lanes, first, keys, p_rows, ds_rows, ds_weights);
    test_context("%d lanes, %d keys from %d on", lanes, (int)keys, (int)first);
    for (int64_t i = 0; i < keys * lanes; i++) {
        CHECK_EQUAL(p_rows[i], rounded_half(p[i]));
        CHECK_EQUAL(ds_rows[i], rounded_half(ds[i]));
    }
    for (int64_t j = 0; j < keys + keys % 2; j++)
        for (int64_t n = 0; n < lanes; n++)
            CHECK_EQUAL(ds_weights[(first + j) / 2 * lanes + n] >> (j % 2 * 16) & 0xffff,
                        j < keys ? rounded_half(ds[j * lanes + n]) : 0);
    guarded_release_all();
}

static void narrows_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t side = 0; side < COUNT(sides); side++) {
            int64_t last = (ATTN_KEY_BLOCK - key_counts[a]) / ATTN_KEY_STEP * ATTN_KEY_STEP;
            check_narrow(kernels, lanes, 0, key_counts[a], sides[side]);
            check_narrow(kernels, lanes, last, key_counts[a], sides[side]);
        }
}

/* What narrow leaves of ds is the weights of one tile: accumulate reads nothing else. */
static void narrowed_ds_are_weights(const struct attn_kernels *kernels, int lanes)
{
    enum { FIRST = 36, KEYS = 23, D = 18 };
    struct random_source source = {3};
    const size_t pairs = ATTN_KEY_BLOCK / 2 * (size_t)lanes;
    float *ds = random_panel(&source, KEYS * lanes, GUARD_BEHIND);
    uint16_t *p_rows = guarded_bytes((size_t)(KEYS * lanes) * 2, 64, GUARD_BEHIND);
    uint16_t *ds_rows = guarded_bytes((size_t)(KEYS * lanes) * 2, 64, GUARD_BEHIND);
    uint32_t *ds_weights = guarded_bytes(pairs * 4, 64, GUARD_BEHIND);
    memset(ds_weights, 0xff, pairs * 4);
    kernels->dot_gradients->narrow(ds, ds, lanes, FIRST, KEYS, p_rows, ds_rows, ds_weights);
    uint16_t *k = random_halves(&source, ATTN_KEY_BLOCK * D, GUARD_BEHIND);
    uint32_t *packed = guarded_bytes(ATTN_KEY_BLOCK / 2 * D * 4, 64, GUARD_BEHIND);
    kernels->dots->pack_values(k, D, 0, ATTN_KEY_BLOCK, D, packed);
    float *d_q = filled_panel(D * (size_t)lanes, 0);
    kernels->dots->accumulate(ds_weights, lanes, FIRST, KEYS, packed, d_q, D);
    for (int64_t c = 0; c < D; c++)
        for (int64_t n = 0; n < lanes; n++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j < KEYS; j++) {
                double term =
                    half_value(ds_rows[j * lanes + n]) * half_value(k[(FIRST + j) * D + c]);
                sum += term;
                size += fabs(term);
            }
            CHECK_WITHIN((double)d_q[c * lanes + n], sum, (KEYS + 2) * 0x1p-24 * size);
        }
}

static void check_pairs(const struct attn_kernels *kernels, int64_t rows, int64_t width,
                        enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 100 + width)};
    int64_t stride = width + 3, span = rows > 0 ? (rows - 1) * stride + width : 0;
    uint16_t *x = random_halves(&source, span, side);
    uint32_t *pairs = guarded_bytes((size_t)((rows + 1) / 2 * width) * 4, 4, side);
    kernels->dot_gradients->pair_rows(x, stride, rows, width, pairs);
    test_context("%d rows of %d", (int)rows, (int)width);
    for (int64_t n = 0; n < rows + rows % 2; n++)
        for (int64_t c = 0; c < width; c++)
            CHECK_EQUAL(pairs[n / 2 * width + c] >> (n % 2 * 16) & 0xffff,
                        n < rows ? x[n * stride + c] : 0);
    guarded_release_all();
}

static void pairs_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    const int64_t widths[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 65};
    for (int64_t rows = 0; rows <= lanes; rows++)
        for (size_t a = 0; a < COUNT(widths); a++)
            check_pairs(kernels, rows, widths[a], sides[a % 2]);
}

/* Rows of values, then as pairs; behind width, where whole vectors may be read, numbers too large
 * to be overlooked. */
static void check_add_rows(const struct attn_kernels *kernels, int lanes, int64_t keys,
                           int64_t rows, int64_t width, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 10000 + rows * 100 + width)};
    int64_t vector = kernels->vector_lanes, across = (width + vector - 1) / vector * vector;
    int64_t c_stride = across + 16;
    uint16_t *a = guarded_bytes((size_t)(keys * lanes) * 2, 64, side);
    for (int64_t i = 0; i < keys * lanes; i++)
        a[i] = i % lanes < rows ? rounded_half(random_float(&source, -2, 2)) : 0;
    uint16_t *b = guarded_bytes((size_t)(rows * across) * 2, 2, side);
    for (int64_t i = 0; i < rows * across; i++)
        b[i] = rounded_half(i % across < width ? random_float(&source, -2, 2) : 1e30f);
    uint32_t *pairs = guarded_bytes((size_t)((rows + 1) / 2 * across) * 4, 4, side);
    kernels->dot_gradients->pair_rows(b, across, rows, across, pairs);
    float *c = guarded_panel((size_t)(keys > 0 ? (keys - 1) * c_stride + across : 0), side);
    for (int64_t j = 0; j < keys; j++)
        random_floats(&source, -2, 2, c + j * c_stride, (size_t)across);

    double *expected = guarded_doubles((size_t)(keys * c_stride));
    double *error = guarded_doubles((size_t)(keys * c_stride));
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = 0; i < width; i++) {
            double sum = c[j * c_stride + i], size = fabs(sum);
            for (int64_t n = 0; n < rows; n++) {
                double term = half_value(a[j * lanes + n]) * half_value(b[n * across + i]);
                sum += term;
                size += fabs(term);
            }
            expected[j * c_stride + i] = sum;
            error[j * c_stride + i] = ((double)rows + 2) * 0x1p-24 * size;
        }
    kernels->dot_gradients->add_rows(a, lanes, keys, pairs, across, rows, c, c_stride, width);
    test_context("%d lanes, %d keys, %d rows, width %d", lanes, (int)keys, (int)rows, (int)width);
    for (int64_t j = 0; j < keys; j++) {
        int64_t row = j * c_stride;
        CHECK_NEAR(c + row, expected + row, 1, error + row, (size_t)width);
        if (j + 1 < keys)
            CHECK_UNWRITTEN(c + row + across, (size_t)(c_stride - across));
    }
    guarded_release_all();
}

static void adds_rows_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    const int64_t v = kernels->vector_lanes;
    const int64_t row_counts[] = {0, 1, 2, 3, 4, 5, v - 1, v, lanes - 1, lanes};
    const int64_t widths[] = {0,         1,     v - 1, v,         v + 1, 2 * v,
                              2 * v + 1, 3 * v, 4 * v, 5 * v + 3, 128};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(row_counts); b++)
            for (size_t c = 0; c < COUNT(widths); c++)
                if (test_takes_one_in(5))
                    check_add_rows(kernels, lanes, key_counts[a], row_counts[b], widths[c],
                                   sides[(a + b + c) % 2]);
}

int main(void)
{
    dot_panel_each("narrows all sizes", narrows_all_sizes);
    dot_panel_each("narrowed gradients are weights of a tile", narrowed_ds_are_weights);
    dot_panel_each("pairs rows of all sizes", pairs_all_sizes);
    dot_panel_each("adds rows of all sizes", adds_rows_of_all_sizes);
    return test_finish();
}
