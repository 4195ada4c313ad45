/* Products of bf16 pairs: all functions of attn_dot_kernels, of each table that the CPU has. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "halves.h"
#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/dot_kernels.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
/* Around every tile edge: 1, 4, 12 and 16 keys or columns, 2 and 32 elements. */
static const int64_t dims[] = {0, 1, 2, 3, 4, 7, 8, 12, 13, 15, 16, 17, 31, 32, 33, 64, 80, 129};
static const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 11, 12, 13, 15, 16, 17, 31, 33, 48, 95, 96};

static void pack_view(const struct attn_kernels *kernels, int lanes, const struct row_view *view,
                      int64_t rows, int64_t d, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + d)};
    uint16_t *memory = guarded_bytes((size_t)view->span * 2, 2, side);
    for (int64_t i = 0; i < view->span; i++)
        memory[i] = (uint16_t)random_bits(&source);
    const uint16_t *q = memory + view->first;
    uint32_t *panel = guarded_bytes((size_t)((d + 1) / 2 * lanes) * 4, 64, side);
    kernels->dots->pack_queries(q, view->row_stride, view->dim_stride, rows, d, lanes, panel);
    test_context("%s, lanes %d, rows %d, d %d, side %d", view->name, lanes, (int)rows, (int)d,
                 (int)side);
    for (int64_t c = 0; c < d + d % 2; c++)
        for (int64_t n = 0; n < lanes; n++) {
            uint32_t expected =
                n < rows && c < d ? q[n * view->row_stride + c * view->dim_stride] : 0;
            CHECK_EQUAL(panel[c / 2 * lanes + n] >> (c % 2 * 16) & 0xffff, expected);
        }
}

static void packs_any_view(const struct attn_kernels *kernels, int lanes)
{
    each_row_view(kernels, lanes, ROW_VIEWS, dims, COUNT(dims), pack_view);
}

static void check_scores(const struct attn_kernels *kernels, int lanes, int64_t d, int64_t keys,
                         int64_t key_stride, enum guard_side side)
{
    struct random_source source = {(uint64_t)(d * 1000 + keys)};
    size_t count = (size_t)(keys * lanes);
    float scale = random_float(&source, -1, 1);
    int64_t steps = keys > 0 ? keys - 1 : 0, even = d + d % 2;
    int64_t size = key_stride < 0 ? -key_stride : key_stride;
    int64_t span = keys > 0 ? steps * size + even : 0;
    uint16_t *memory = random_halves(&source, span, side);
    const uint16_t *k = memory + (key_stride < 0 ? steps * size : 0);
    uint16_t *q = random_halves(&source, lanes * d, side);
    uint32_t *panel = guarded_bytes((size_t)(even / 2 * lanes) * 4, 64, side);
    kernels->dots->pack_queries(q, d, 1, lanes, d, lanes, panel);
    float *m = random_panel(&source, lanes, side), *m_expected = panel_copy(m, 1, lanes);

    float *s = guarded_panel(count, side);
    kernels->dots->scores(panel, lanes, d, k, key_stride, keys, scale, s, m);

    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    for (int64_t j = 0; j < keys; j++)
        for (int64_t n = 0; n < lanes; n++) {
            double sum = 0, sizes = 0;
            for (int64_t c = 0; c < d; c++) {
                double term = half_value(q[n * d + c]) * half_value(k[j * key_stride + c]);
                sum += term;
                sizes += fabs(term);
            }
            expected[j * lanes + n] = scale * sum;
            error[j * lanes + n] = ((double)d + 2) * 0x1p-24 * sizes * fabs((double)scale);
            m_expected[n] = fmaxf(m_expected[n], s[j * lanes + n]);
        }
    test_context("lanes %d, d %d, keys %d, stride %d, side %d", lanes, (int)d, (int)keys,
                 (int)key_stride, (int)side);
    CHECK_NEAR(s, expected, 1, error, count);
    CHECK_SAME_BITS(m, m_expected, (size_t)lanes);

    /* A score has the same bits wherever its key stands in a tile. */
    float *alone = guarded_panel(count, side);
    for (int64_t j = 0; j < keys; j++)
        kernels->dots->scores(panel, lanes, d, k + j * key_stride, key_stride, 1, scale,
                              alone + j * lanes, m);
    CHECK_SAME_BITS(alone, s, count);
    guarded_release_all();
}

static void scores_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(dims); a++)
        for (size_t b = 0; b < COUNT(key_counts); b++) {
            int64_t d = dims[a], even = d + d % 2;
            const int64_t strides[] = {even, d + 1, 2 * d + 7, 0, -even, -d - 3};
            if (test_takes_one_in(5))
                check_scores(kernels, lanes, d, key_counts[b], strides[(a + b) % COUNT(strides)],
                             sides[b % 2]);
        }
}

/* A block of keys and what goes into softmax and accumulate with it. Lanes exclude some keys, and
 * lane 0 all but one. */
struct block {
    int lanes;
    int64_t d_v;
    float *scores, *m_old, *m_new, *l, *l_rest, *output;
    uint16_t *v; /* [ATTN_KEY_BLOCK][d_v] */
};

/* Keys outside first..first+keys−1 are excluded by all lanes. */
static struct block make_block(int lanes, int64_t d_v, int64_t first, int64_t keys)
{
    struct random_source source = {(uint64_t)(first * 100 + keys * 10 + d_v)};
    struct block block = {.lanes = lanes, .d_v = d_v};
    block.scores = random_panel(&source, ATTN_KEY_BLOCK * lanes, GUARD_BEHIND);
    block.m_old = random_panel(&source, lanes, GUARD_BEHIND);
    block.l = random_panel(&source, lanes, GUARD_BEHIND);
    block.l_rest = filled_panel((size_t)lanes, 0);
    block.output = random_panel(&source, d_v * lanes, GUARD_BEHIND);
    block.v = random_halves(&source, ATTN_KEY_BLOCK * d_v, GUARD_BEHIND);
    block.m_new = panel_copy(block.m_old, 1, lanes);
    for (int64_t j = 0; j < ATTN_KEY_BLOCK; j++)
        for (int n = 0; n < lanes; n++) {
            float *s = &block.scores[j * lanes + n];
            bool excluded = j < first || j >= first + keys || random_integer(&source, 0, 3) == 0;
            if (excluded || (n == 0 && j != first))
                *s = -INFINITY;
            block.m_new[n] = fmaxf(block.m_new[n], *s);
        }
    return block;
}

/* What became of a block. */
struct sums {
    float *l, *l_rest, *output;
    uint32_t *weights;
};

/* As one tile: the keys of a block from `first` on, with values of `values_first` to the end of the
 * tile or of the block. What is not written by the kernels holds NaN. */
static struct sums take_tile(const struct attn_kernels *kernels, const struct block *block,
                             int64_t first, int64_t keys, int64_t values_first, bool to_end,
                             enum guard_side side)
{
    int lanes = block->lanes;
    int64_t values_end = to_end ? ATTN_KEY_BLOCK : first + keys;
    struct sums sums = {.l = panel_copy(block->l, 1, lanes),
                        .l_rest = panel_copy(block->l_rest, 1, lanes),
                        .output = panel_copy(block->output, block->d_v, lanes)};
    uint32_t *values = guarded_bytes((size_t)(ATTN_KEY_BLOCK / 2 * block->d_v) * 4, 64, side);
    uint32_t *weights = guarded_bytes((size_t)(ATTN_KEY_BLOCK / 2 * lanes) * 4, 64, side);
    memset(values, 0xff, (size_t)(ATTN_KEY_BLOCK / 2 * block->d_v) * sizeof *values);
    memset(weights, 0xff, (size_t)(ATTN_KEY_BLOCK / 2 * lanes) * sizeof *weights);
    kernels->dots->pack_values(block->v + values_first * block->d_v, block->d_v, values_first,
                               values_end - values_first, block->d_v, values);
    kernels->dots->softmax(block->scores + first * lanes, lanes, first, keys, block->m_old,
                           block->m_new, sums.l, sums.l_rest, sums.output, block->d_v, weights);
    kernels->dots->accumulate(weights, lanes, first, keys, values, sums.output, block->d_v);
    sums.weights = weights;
    return sums;
}

/* Against the softmax of f32, and double sums of the rounded weights. */
static void check_tile(const struct attn_kernels *kernels, int lanes, int64_t d_v, int64_t first,
                       int64_t keys, enum guard_side side)
{
    struct block block = make_block(lanes, d_v, first, keys);
    int64_t before = first >= 8 ? first - 8 : 0;
    struct sums sums = take_tile(kernels, &block, first, keys, before, d_v % 2, side);
    float *weights = panel_copy(block.scores + first * lanes, keys, lanes);
    kernels->softmax(weights, lanes, keys, block.m_old, block.m_new, block.l, block.l_rest,
                     block.output, d_v);
    test_context("lanes %d, keys %d from %d on, d_v %d, side %d", lanes, (int)keys, (int)first,
                 (int)d_v, (int)side);
    CHECK_SAME_BITS(sums.l, block.l, (size_t)lanes);
    CHECK_SAME_BITS(sums.l_rest, block.l_rest, (size_t)lanes);
    for (int64_t j = 0; j < keys + keys % 2; j++)
        for (int64_t n = 0; n < lanes; n++)
            CHECK_EQUAL(sums.weights[(first + j) / 2 * lanes + n] >> (j % 2 * 16) & 0xffff,
                        j < keys ? rounded_half(weights[j * lanes + n]) : 0);

    size_t count = (size_t)(d_v * lanes);
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    for (int64_t c = 0; c < d_v; c++)
        for (int64_t n = 0; n < lanes; n++) {
            double sum = block.output[c * lanes + n], sizes = fabs(sum);
            for (int64_t j = 0; j < keys; j++) {
                double weight = half_value(rounded_half(weights[j * lanes + n]));
                double term = weight * half_value(block.v[(first + j) * d_v + c]);
                sum += term;
                sizes += fabs(term);
            }
            expected[c * lanes + n] = sum;
            error[c * lanes + n] = ((double)keys + 2) * 0x1p-24 * sizes;
        }
    CHECK_NEAR(sums.output, expected, 1, error, count);
    guarded_release_all();
}

/* The same block has the same bits as a whole, and from any values that hold the tile's. */
static void check_cuts(const struct attn_kernels *kernels, int lanes, int64_t d_v, int64_t first,
                       int64_t keys)
{
    struct block block = make_block(lanes, d_v, first, keys);
    struct sums part = take_tile(kernels, &block, first, keys, first, false, GUARD_BEHIND);
    struct sums more = take_tile(kernels, &block, first, keys, 0, true, GUARD_BEHIND);
    struct sums whole = take_tile(kernels, &block, 0, ATTN_KEY_BLOCK, 0, true, GUARD_BEHIND);
    test_context("lanes %d, keys %d from %d on, d_v %d", lanes, (int)keys, (int)first, (int)d_v);
    CHECK_SAME_BITS(more.output, part.output, (size_t)(d_v * lanes));
    CHECK_SAME_BITS(whole.output, part.output, (size_t)(d_v * lanes));
    CHECK_SAME_BITS(whole.l, part.l, (size_t)lanes);
    guarded_release_all();
}

static void tiles_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(dims); b++) {
            int64_t keys = key_counts[a], room = (ATTN_KEY_BLOCK - keys) / ATTN_KEY_STEP;
            int64_t first = room > 0 ? (int64_t)(7 * a + 5 * b) % (room + 1) * ATTN_KEY_STEP : 0;
            if (!test_takes_one_in(5))
                continue;
            check_tile(kernels, lanes, dims[b], first, keys, sides[(a + b) % 2]);
            if (keys > 0)
                check_cuts(kernels, lanes, dims[b], first, keys);
        }
}

/* A column by itself, and a lane in either panel, have the bits that they have among others. */
static void columns_and_lanes_are_their_own(const struct attn_kernels *kernels, int lanes)
{
    enum { D_V = 37, FIRST = 20, KEYS = 51 };
    struct block block = make_block(lanes, D_V, FIRST, KEYS);
    struct sums all = take_tile(kernels, &block, FIRST, KEYS, 0, true, GUARD_BEHIND);
    for (int64_t c = 0; c < D_V; c++) {
        struct block column = block;
        column.d_v = 1;
        column.output = panel_copy(block.output + c * lanes, 1, lanes);
        column.v = random_halves(&(struct random_source){0}, ATTN_KEY_BLOCK, GUARD_BEHIND);
        for (int64_t j = 0; j < ATTN_KEY_BLOCK; j++)
            column.v[j] = block.v[j * D_V + c];
        struct sums alone = take_tile(kernels, &column, FIRST, KEYS, FIRST, false, GUARD_BEHIND);
        CHECK_SAME_BITS(alone.output, all.output + c * lanes, (size_t)lanes);
    }
    for (int half = 0; half < 2 && lanes == 2 * kernels->vector_lanes; half++) {
        struct block one = {.lanes = lanes / 2,
                            .d_v = D_V,
                            .scores = panel_half(block.scores, ATTN_KEY_BLOCK, lanes, half),
                            .m_old = panel_half(block.m_old, 1, lanes, half),
                            .m_new = panel_half(block.m_new, 1, lanes, half),
                            .l = panel_half(block.l, 1, lanes, half),
                            .l_rest = panel_half(block.l_rest, 1, lanes, half),
                            .output = panel_half(block.output, D_V, lanes, half),
                            .v = block.v};
        struct sums sums = take_tile(kernels, &one, FIRST, KEYS, 0, true, GUARD_BEHIND);
        CHECK_SAME_HALF(sums.output, all.output, D_V, lanes, half);
        CHECK_SAME_HALF(sums.l, all.l, 1, lanes, half);
    }
}

int main(void)
{
    dot_panel_each("pack_queries takes any view", packs_any_view);
    dot_panel_each("scores of all sizes", scores_of_all_sizes);
    dot_panel_each("softmax and accumulate of all tiles", tiles_of_all_sizes);
    dot_panel_each("columns and lanes are their own", columns_and_lanes_are_their_own);
    return test_finish();
}
