/* pack_queries, scores, raise_maximum. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/kernel.h"
#include "panel.h"

/* Around every tile edge: 1, 2, 4, 6, 8, 12 and 16 keys or elements a tile. */
static const int64_t dims[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 80, 128, 193};
static const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 24, 25, 95, 96};

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};

static void pack_view(const struct attn_kernels *kernels, int lanes, const struct row_view *view,
                      int64_t rows, int64_t d, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + d)};
    float *memory = guarded_floats((size_t)view->span, side);
    float *q = memory + view->first;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t c = 0; c < d; c++)
            q[n * view->row_stride + c * view->dim_stride] = random_float(&source, -9, 9);
    float *panel = guarded_panel((size_t)(d * lanes), side);
    float *expected = guarded_panel((size_t)(d * lanes), side);
    kernels->pack_queries(q, view->row_stride, view->dim_stride, rows, d, lanes, panel);
    for (int64_t c = 0; c < d; c++)
        for (int64_t n = 0; n < lanes; n++)
            expected[c * lanes + n] =
                n < rows ? q[n * view->row_stride + c * view->dim_stride] : 0.0f;
    test_context("%s, lanes %d, rows %d, d %d, side %d", view->name, lanes, (int)rows, (int)d,
                 (int)side);
    CHECK_SAME_BITS(panel, expected, (size_t)(d * lanes));
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
    float *panel = random_panel(&source, d * lanes, side);
    int64_t steps = keys > 0 ? keys - 1 : 0;
    int64_t stride_size = key_stride < 0 ? -key_stride : key_stride;
    int64_t span = keys > 0 && d > 0 ? steps * stride_size + d : 0;
    float *memory = guarded_floats((size_t)span, side);
    float *k = memory + (key_stride < 0 && span > 0 ? steps * stride_size : 0);
    for (int64_t j = 0; j < keys; j++)
        random_floats(&source, -2, 2, k + j * key_stride, (size_t)d);
    float *m = random_panel(&source, lanes, side);
    float *m_expected = guarded_panel((size_t)lanes, side);
    memcpy(m_expected, m, (size_t)lanes * sizeof *m);

    float *s = guarded_panel(count, side);
    kernels->scores(panel, lanes, d, k, key_stride, keys, scale, s, m);

    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    for (int64_t j = 0; j < keys; j++) {
        for (int64_t n = 0; n < lanes; n++) {
            double sum = 0, size = 0;
            for (int64_t c = 0; c < d; c++) {
                double term = (double)panel[c * lanes + n] * k[j * key_stride + c];
                sum += term;
                size += fabs(term);
            }
            expected[j * lanes + n] = scale * sum;
            /* d roundings of partial sums, each at most the sum of sizes, one of each product and
             * of the scale. */
            error[j * lanes + n] = ((double)d + 2) * 0x1p-24 * size * fabs((double)scale);
            if (s[j * lanes + n] > m_expected[n])
                m_expected[n] = s[j * lanes + n];
        }
    }
    test_context("lanes %d, d %d, keys %d, stride %d, side %d", lanes, (int)d, (int)keys,
                 (int)key_stride, (int)side);
    CHECK_NEAR(s, expected, 1, error, count);
    CHECK_SAME_BITS(m, m_expected, (size_t)lanes);

    /* A score has the same bits wherever its key stands in a tile. */
    float *alone = guarded_panel(count, side);
    for (int64_t j = 0; j < keys; j++)
        kernels->scores(panel, lanes, d, k + j * key_stride, key_stride, 1, scale,
                        alone + j * lanes, m);
    CHECK_SAME_BITS(alone, s, count);
    guarded_release_all();
}

static void scores_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(dims); a++)
        for (size_t b = 0; b < COUNT(key_counts); b++)
            for (size_t side = 0; side < COUNT(sides); side++) {
                int64_t d = dims[a];
                const int64_t strides[] = {d, d + 1, 2 * d + 7, 0, -d, -d - 3};
                int64_t stride = strides[(a + b) % COUNT(strides)];
                if (!test_takes_one_in(5))
                    continue;
                check_scores(kernels, lanes, d, key_counts[b], stride, sides[side]);
                check_scores(kernels, lanes, d, key_counts[b], d, sides[side]);
            }
}

static void lanes_of_scores_are_independent(const struct attn_kernels *kernels, int lanes)
{
    enum { D = 33, KEYS = 23 };
    struct random_source source = {5};
    float *panel = random_panel(&source, D * lanes, GUARD_BEHIND);
    float *k = guarded_floats(KEYS * D, GUARD_BEHIND);
    random_floats(&source, -2, 2, k, KEYS * D);
    float *s = guarded_panel((size_t)(KEYS * lanes), GUARD_BEHIND);
    float *m = guarded_panel((size_t)lanes, GUARD_BEHIND);
    for (int64_t n = 0; n < lanes; n++)
        m[n] = -INFINITY;
    kernels->scores(panel, lanes, D, k, D, KEYS, 0.25f, s, m);

    const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, 0};
    for (int64_t lane = 0; lane < lanes; lane++) {
        float *disturbed = guarded_panel((size_t)(D * lanes), GUARD_BEHIND);
        float *s2 = guarded_panel((size_t)(KEYS * lanes), GUARD_BEHIND);
        float *m2 = guarded_panel((size_t)lanes, GUARD_BEHIND);
        for (int64_t c = 0; c < D; c++)
            for (int64_t n = 0; n < lanes; n++)
                disturbed[c * lanes + n] =
                    n == lane ? panel[c * lanes + n] : strange[(size_t)(n + c) % COUNT(strange)];
        for (int64_t n = 0; n < lanes; n++)
            m2[n] = n == lane ? -INFINITY : strange[(size_t)n % COUNT(strange)];
        kernels->scores(disturbed, lanes, D, k, D, KEYS, 0.25f, s2, m2);
        test_context("lane %d of %d", (int)lane, lanes);
        CHECK_SAME_BITS(m2 + lane, m + lane, 1);
        for (int64_t j = 0; j < KEYS; j++)
            CHECK_SAME_BITS(s2 + j * lanes + lane, s + j * lanes + lane, 1);
    }
}

static void maximum_rises_only(const struct attn_kernels *kernels, int lanes)
{
    struct random_source source = {6};
    for (size_t b = 0; b < COUNT(key_counts); b++) {
        for (size_t side = 0; side < COUNT(sides); side++) {
            int64_t keys = key_counts[b];
            float *s = random_panel(&source, keys * lanes, sides[side]);
            float *m = random_panel(&source, lanes, sides[side]);
            m[0] = -INFINITY;
            if (keys > 0)
                s[0] = -INFINITY;
            float *expected = guarded_panel((size_t)lanes, sides[side]);
            memcpy(expected, m, (size_t)lanes * sizeof *m);
            for (int64_t i = 0; i < keys * lanes; i++)
                if (s[i] > expected[i % lanes])
                    expected[i % lanes] = s[i];
            kernels->raise_maximum(s, lanes, keys, m);
            test_context("lanes %d, keys %d, side %d", lanes, (int)keys, (int)sides[side]);
            CHECK_SAME_BITS(m, expected, (size_t)lanes);
        }
    }
}

/* A lane's bits are the same in a panel of one vector and of two. */
static void lanes_are_the_same_in_both_panels(const struct attn_kernels *kernels)
{
    int lanes = 2 * kernels->vector_lanes;
    struct random_source source = {7};
    for (size_t a = 0; a < COUNT(dims); a++) {
        for (size_t b = 0; b < COUNT(key_counts); b++) {
            int64_t d = dims[a], keys = key_counts[b];
            float *panel = random_panel(&source, d * lanes, GUARD_BEHIND);
            float *k = guarded_floats((size_t)(keys * d), GUARD_BEHIND);
            random_floats(&source, -2, 2, k, (size_t)(keys * d));
            float *s = guarded_panel((size_t)(keys * lanes), GUARD_BEHIND);
            float *m = random_panel(&source, lanes, GUARD_BEHIND);
            float *raised = panel_copy(m, 1, lanes), *before = panel_copy(m, 1, lanes);
            kernels->scores(panel, lanes, d, k, d, keys, 0.3f, s, m);
            kernels->raise_maximum(s, lanes, keys, raised);
            test_context("d %d, keys %d", (int)d, (int)keys);
            for (int half = 0; half < 2; half++) {
                float *s_one = guarded_panel((size_t)(keys * lanes / 2), GUARD_BEHIND);
                float *m_one = panel_half(before, 1, lanes, half);
                float *raised_one = panel_half(before, 1, lanes, half);
                kernels->scores(panel_half(panel, d, lanes, half), lanes / 2, d, k, d, keys, 0.3f,
                                s_one, m_one);
                kernels->raise_maximum(s_one, lanes / 2, keys, raised_one);
                CHECK_SAME_HALF(s_one, s, keys, lanes, half);
                CHECK_SAME_HALF(m_one, m, 1, lanes, half);
                CHECK_SAME_HALF(raised_one, raised, 1, lanes, half);
            }
            guarded_release_all();
        }
    }
}

int main(void)
{
    panel_each("pack_queries takes any view and fills empty lanes with 0", packs_any_view);
    panel_each("scores and their maximum at all sizes", scores_of_all_sizes);
    panel_each("lanes of scores are independent", lanes_of_scores_are_independent);
    panel_each("raise_maximum", maximum_rises_only);
    kernels_each("a lane's scores are the same in both panels", lanes_are_the_same_in_both_panels);
    return test_finish();
}
