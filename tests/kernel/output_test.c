/* accumulate, normalise, unpack_output. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t dims[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                               11, 12, 13, 16, 17, 32, 33, 64, 80, 127};
static const int64_t key_counts[] = {0, 1, 2, 3, 6, 7, 12, 13, 95, 96};

static void check_accumulate(const struct attn_kernels *kernels, int lanes, int64_t keys,
                             int64_t d_v, int64_t value_stride, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 1000 + d_v)};
    size_t outputs = (size_t)(d_v * lanes);
    float *s = random_panel(&source, keys * lanes, side);
    float *output = random_panel(&source, d_v * lanes, side);
    int64_t stride_size = value_stride < 0 ? -value_stride : value_stride;
    int64_t span = keys > 0 && d_v > 0 ? (keys - 1) * stride_size + d_v : 0;
    float *memory = guarded_floats((size_t)span, side);
    float *v = memory + (value_stride < 0 && span > 0 ? (keys - 1) * stride_size : 0);
    for (int64_t j = 0; j < keys; j++)
        random_floats(&source, -2, 2, v + j * value_stride, (size_t)d_v);

    double *expected = guarded_doubles(outputs), *error = guarded_doubles(outputs);
    for (int64_t c = 0; c < d_v; c++) {
        for (int64_t n = 0; n < lanes; n++) {
            double sum = output[c * lanes + n], size = fabs(sum);
            for (int64_t j = 0; j < keys; j++) {
                double term = (double)s[j * lanes + n] * v[j * value_stride + c];
                sum += term;
                size += fabs(term);
            }
            expected[c * lanes + n] = sum;
            error[c * lanes + n] = ((double)keys + 1) * 0x1p-24 * size;
        }
    }
    /* Each column by itself has the same bits as among others. */
    float *alone = guarded_panel(outputs, side);
    for (int64_t c = 0; c < d_v; c++) {
        memcpy(alone + c * lanes, output + c * lanes, (size_t)lanes * sizeof *output);
        kernels->accumulate(s, lanes, keys, v + c, value_stride, alone + c * lanes, 1);
    }
    kernels->accumulate(s, lanes, keys, v, value_stride, output, d_v);
    test_context("lanes %d, keys %d, d_v %d, stride %d, side %d", lanes, (int)keys, (int)d_v,
                 (int)value_stride, (int)side);
    CHECK_NEAR(output, expected, 1, error, outputs);
    CHECK_SAME_BITS(alone, output, outputs);
    guarded_release_all();
}

static void accumulates_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(dims); b++)
            for (size_t side = 0; side < COUNT(sides); side++) {
                int64_t d = dims[b];
                const int64_t strides[] = {d + 1, 2 * d + 7, 0, -d, -d - 3};
                check_accumulate(kernels, lanes, key_counts[a], d, d, sides[side]);
                check_accumulate(kernels, lanes, key_counts[a], d,
                                 strides[(a + b) % COUNT(strides)], sides[side]);
            }
}

static void lanes_of_accumulate_are_independent(const struct attn_kernels *kernels, int lanes)
{
    enum { KEYS = 13, D_V = 17 };
    const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, 0};
    float *v = guarded_floats(KEYS * D_V, GUARD_BEHIND);
    struct random_source source = {3};
    random_floats(&source, -1, 1, v, KEYS * D_V);
    float *s = random_panel(&source, KEYS * lanes, GUARD_BEHIND);
    float *clean = guarded_panel((size_t)(D_V * lanes), GUARD_BEHIND);
    memset(clean, 0, (size_t)(D_V * lanes) * sizeof *clean);
    kernels->accumulate(s, lanes, KEYS, v, D_V, clean, D_V);
    for (int64_t lane = 0; lane < lanes; lane++) {
        float *disturbed = guarded_panel((size_t)(KEYS * lanes), GUARD_BEHIND);
        float *output = guarded_panel((size_t)(D_V * lanes), GUARD_BEHIND);
        for (int64_t i = 0; i < KEYS * lanes; i++)
            disturbed[i] = i % lanes == lane ? s[i] : strange[(size_t)i % COUNT(strange)];
        for (int64_t i = 0; i < D_V * lanes; i++)
            output[i] = i % lanes == lane ? 0 : strange[(size_t)i % COUNT(strange)];
        kernels->accumulate(disturbed, lanes, KEYS, v, D_V, output, D_V);
        test_context("lane %d of %d", (int)lane, lanes);
        for (int64_t c = 0; c < D_V; c++)
            CHECK_SAME_BITS(output + c * lanes + lane, clean + c * lanes + lane, 1);
    }
}

static void normalises_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    struct random_source source = {4};
    for (size_t a = 0; a < 2 * COUNT(dims); a++) {
        int64_t d_v = dims[a / 2];
        size_t count = (size_t)(d_v * lanes);
        float *output = random_panel(&source, d_v * lanes, sides[a % 2]);
        float *l = guarded_panel((size_t)lanes, sides[a % 2]);
        random_floats(&source, 1, 500, l, (size_t)lanes);
        l[lanes / 2] = 0; /* a row without a key */
        double *expected = guarded_doubles(count), *error = guarded_doubles(count);
        for (size_t i = 0; i < count; i++) {
            float sum = l[i % (size_t)lanes];
            expected[i] = sum == 0 ? 0 : (double)output[i] / sum;
            error[i] = 0x1p-23 * fabs(expected[i]);
        }
        uint32_t broken = kernels->normalise(output, lanes, d_v, l, lanes);
        test_context("lanes %d, d_v %d", lanes, (int)d_v);
        CHECK_NEAR(output, expected, 1, error, count);
        CHECK_EQUAL(broken, 0);
        guarded_release_all();
    }
}

/* What the careful path for NaN and Inf among the values relies on. */
static void normalise_names_the_broken_lanes(const struct attn_kernels *kernels, int lanes)
{
    enum { D_V = 9 };
    const float broken_values[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int64_t lane = 0; lane < lanes; lane++) {
        for (int64_t c = 0; c < D_V; c++) {
            struct random_source source = {11};
            float *output = random_panel(&source, D_V * lanes, GUARD_BEHIND);
            float *l = guarded_panel((size_t)lanes, GUARD_BEHIND);
            random_floats(&source, 1, 5, l, (size_t)lanes);
            output[c * lanes + lane] = broken_values[(size_t)(lane + c) % COUNT(broken_values)];
            test_context("lane %d of %d, column %d", (int)lane, lanes, (int)c);
            float *copy = guarded_panel((size_t)(D_V * lanes), GUARD_BEHIND);
            memcpy(copy, output, (size_t)(D_V * lanes) * sizeof *copy);
            CHECK_EQUAL(kernels->normalise(copy, lanes, D_V, l, lanes), UINT32_C(1) << lane);
            /* Lanes behind the last row are nobody's. */
            memcpy(copy, output, (size_t)(D_V * lanes) * sizeof *copy);
            CHECK_EQUAL(kernels->normalise(copy, lanes, D_V, l, lane), 0);
            /* A sum that is NaN already is the row's own doing. */
            l[lane] = NAN;
            CHECK_EQUAL(kernels->normalise(output, lanes, D_V, l, lanes), 0);
            CHECK(isnan(output[lane]) && isnan(output[(D_V - 1) * lanes + lane]));
        }
        guarded_release_all();
    }
}

static void an_empty_lane_hides_what_it_holds(const struct attn_kernels *kernels, int lanes)
{
    float *output = guarded_panel(3 * (size_t)lanes, GUARD_BEHIND); /* NaN */
    float *l = filled_panel((size_t)lanes, 0);
    CHECK_EQUAL(kernels->normalise(output, lanes, 3, l, lanes), 0);
    CHECK_ALL(output, 0, 3 * (size_t)lanes);
}

static void unpack_view(const struct attn_kernels *kernels, int lanes, const struct row_view *view,
                        int64_t rows, int64_t d, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + d)};
    float *panel = random_panel(&source, d * lanes, side);
    float *memory = guarded_floats((size_t)view->span, side);
    float *expected = guarded_floats((size_t)view->span, side);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t c = 0; c < d; c++)
            expected[view->first + n * view->row_stride + c * view->dim_stride] =
                panel[c * lanes + n];
    kernels->unpack_output(panel, lanes, d, memory + view->first, view->row_stride,
                           view->dim_stride, rows);
    test_context("%s, lanes %d, rows %d, d %d, side %d", view->name, lanes, (int)rows, (int)d,
                 (int)side);
    CHECK_SAME_BITS(memory, expected, (size_t)view->span);
}

static void unpacks_to_any_view(const struct attn_kernels *kernels, int lanes)
{
    each_row_view(kernels, lanes, DISTINCT_ROW_VIEWS, dims, COUNT(dims), unpack_view);
}

/* A lane's bits are the same in a panel of one vector and of two. */
static void lanes_are_the_same_in_both_panels(const struct attn_kernels *kernels)
{
    int lanes = 2 * kernels->vector_lanes;
    struct random_source source = {12};
    for (size_t a = 0; a < COUNT(dims); a++) {
        for (size_t b = 0; b < COUNT(key_counts); b++) {
            int64_t d_v = dims[a], keys = key_counts[b];
            float *s = random_panel(&source, keys * lanes, GUARD_BEHIND);
            float *output = random_panel(&source, d_v * lanes, GUARD_BEHIND);
            float *before = panel_copy(output, d_v, lanes);
            float *v = guarded_floats((size_t)(keys * d_v), GUARD_BEHIND);
            random_floats(&source, -2, 2, v, (size_t)(keys * d_v));
            float *l = guarded_panel((size_t)lanes, GUARD_BEHIND);
            random_floats(&source, 1, 500, l, (size_t)lanes);
            kernels->accumulate(s, lanes, keys, v, d_v, output, d_v);
            kernels->normalise(output, lanes, d_v, l, lanes);
            test_context("d_v %d, keys %d", (int)d_v, (int)keys);
            for (int half = 0; half < 2; half++) {
                float *one = panel_half(before, d_v, lanes, half);
                kernels->accumulate(panel_half(s, keys, lanes, half), lanes / 2, keys, v, d_v, one,
                                    d_v);
                kernels->normalise(one, lanes / 2, d_v, panel_half(l, 1, lanes, half), lanes / 2);
                CHECK_SAME_HALF(one, output, d_v, lanes, half);
            }
            guarded_release_all();
        }
    }
}

int main(void)
{
    panel_each("accumulate at all sizes", accumulates_all_sizes);
    panel_each("lanes of accumulate are independent", lanes_of_accumulate_are_independent);
    panel_each("normalise at all sizes", normalises_all_sizes);
    panel_each("normalise names the lanes that are not finite", normalise_names_the_broken_lanes);
    panel_each("normalise clears a lane without a key", an_empty_lane_hides_what_it_holds);
    panel_each("unpack_output writes any view and nothing else", unpacks_to_any_view);
    kernels_each("a lane's output is the same in both panels", lanes_are_the_same_in_both_panels);
    return test_finish();
}
