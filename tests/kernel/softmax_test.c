/* softmax and weights: the exponential function and the running sum. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};

/* Below this the exact result is subnormal, or nearly so. */
static const float smallest_argument = -87.0f;

/* Arguments in [−87, 0]: `block` tells which part of the range, so that many blocks sample it
 * densely, near 0 and around the borders of the argument reduction, n·ln 2 / 2, too. */
static void sample_arguments(int block, float *x, size_t count)
{
    struct random_source source = {(uint64_t)block};
    for (size_t i = 0; i < count; i++) {
        switch (block % 3) {
        case 0:
            x[i] = random_float(&source, smallest_argument, 0);
            break;
        case 1:
            x[i] = -ldexpf(random_float(&source, 1, 2), (int)random_integer(&source, -40, 5));
            break;
        default:
            x[i] = -0.34657359f * (float)random_integer(&source, 0, 250);
            for (int64_t step = random_integer(&source, -3, 3); step != 0;
                 step += step < 0 ? 1 : -1)
                x[i] = nextafterf(x[i], step < 0 ? -INFINITY : INFINITY);
        }
        x[i] = fmaxf(fminf(x[i], 0), smallest_argument);
    }
}

static void exp_is_within_two_ulps(const struct attn_kernels *kernels, int panel_lanes)
{
    size_t lanes = (size_t)panel_lanes, count = ATTN_KEY_BLOCK * lanes;
    float *x = guarded_panel(count, GUARD_BEHIND), *s = guarded_panel(count, GUARD_BEHIND);
    float *m = filled_panel(lanes, 0), *l = filled_panel(lanes, 0), *one = filled_panel(lanes, 1);
    float *l_rest = filled_panel(lanes, 0);
    double worst_softmax = 0, worst_weights = 0;
    float worst_argument = 0;
    for (int block = 0; block < 600; block++) {
        if (!test_takes_one_in(7))
            continue;
        sample_arguments(block, x, count);
        memcpy(s, x, count * sizeof *s);
        kernels->softmax(s, panel_lanes, ATTN_KEY_BLOCK, m, m, l, l_rest, NULL, 0);
        for (size_t i = 0; i < count; i++) {
            double ulps = compare_ulps(s[i], exp(x[i]));
            if (!(ulps <= worst_softmax)) {
                worst_softmax = ulps;
                worst_argument = x[i];
            }
        }
        memcpy(s, x, count * sizeof *s);
        kernels->weights(s, panel_lanes, ATTN_KEY_BLOCK, m, one);
        for (size_t i = 0; i < count; i++)
            if (!(compare_ulps(s[i], exp(x[i])) <= worst_weights))
                worst_weights = compare_ulps(s[i], exp(x[i]));
    }
    test_context("worst at exp(%.9g)", (double)worst_argument);
    CHECK_WITHIN(worst_softmax, 0, 2.0);
    CHECK_WITHIN(worst_weights, 0, 2.0);
}

static void exp_at_the_ends(const struct attn_kernels *kernels, int panel_lanes)
{
    size_t lanes = (size_t)panel_lanes;
    float *m = filled_panel(lanes, 0), *l = filled_panel(lanes, 0), *one = filled_panel(lanes, 1);
    float *l_rest = filled_panel(lanes, 0);
    const float arguments[] = {0.0f,    -0.0f,   -INFINITY, -87.3f, -87.4f,
                               -103.0f, -104.0f, -1e4f,     -1e30f, -3.4028235e38f};
    for (size_t i = 0; i < COUNT(arguments); i++) {
        float *softmax = filled_panel(lanes, arguments[i]);
        float *weights = filled_panel(lanes, arguments[i]);
        kernels->softmax(softmax, panel_lanes, 1, m, m, l, l_rest, NULL, 0);
        kernels->weights(weights, panel_lanes, 1, m, one);
        for (size_t n = 0; n < lanes; n++) {
            test_context("exp(%g), lane %zu", (double)arguments[i], n);
            CHECK_WITHIN(softmax[n], exp(arguments[i]), 0x1p-126);
            CHECK_WITHIN(weights[n], exp(arguments[i]), 0x1p-126);
            if (arguments[i] == 0)
                CHECK(softmax[n] == 1.0f && weights[n] == 1.0f);
            if (isinf(arguments[i]))
                CHECK(softmax[n] == 0.0f && weights[n] == 0.0f);
        }
    }
}

/* A NaN may carry any payload and sign; none of them may turn into a number. */
static void exp_of_nan_is_nan(const struct attn_kernels *kernels, int panel_lanes)
{
    size_t lanes = (size_t)panel_lanes;
    float *m = filled_panel(lanes, 0), *one = filled_panel(lanes, 1);
    struct random_source source = {7};
    for (int round = 0; round < 2000; round++) {
        float *l = filled_panel(lanes, 0), *l_rest = filled_panel(lanes, 0);
        float *softmax = guarded_panel(lanes, GUARD_BEHIND);
        float *weights = guarded_panel(lanes, GUARD_BEHIND);
        for (size_t n = 0; n < lanes; n++) {
            uint32_t payload = (uint32_t)random_bits(&source) & UINT32_C(0x803fffff);
            uint32_t bits = UINT32_C(0x7fc00000) | payload;
            memcpy(&softmax[n], &bits, sizeof bits);
            memcpy(&weights[n], &bits, sizeof bits);
        }
        kernels->softmax(softmax, panel_lanes, 1, m, m, l, l_rest, NULL, 0);
        kernels->weights(weights, panel_lanes, 1, m, one);
        CHECK_ALL(softmax, NAN, lanes);
        CHECK_ALL(l, NAN, lanes);
        CHECK_ALL(weights, NAN, lanes);
        if (round % 100 == 99) {
            guarded_release_all();
            m = filled_panel(lanes, 0);
            one = filled_panel(lanes, 1);
        }
    }
}

static void check_block(const struct attn_kernels *kernels, int panel_lanes, int64_t keys,
                        int64_t d_v, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 1000 + d_v)};
    size_t lanes = (size_t)panel_lanes, count = (size_t)keys * lanes;
    size_t outputs = (size_t)d_v * lanes;
    float *s = guarded_panel(count, side), *output = guarded_panel(outputs, side);
    float *m_old = guarded_panel(lanes, side), *m_new = guarded_panel(lanes, side);
    float *l = guarded_panel(lanes, side), *l_rest = guarded_panel(lanes, side);
    memset(l_rest, 0, lanes * sizeof *l_rest);
    random_floats(&source, -20, 5, s, count);
    random_floats(&source, -3, 3, output, outputs);
    random_floats(&source, -10, 10, m_old, lanes);
    random_floats(&source, 0, 100, l, lanes);
    double *s_expected = guarded_doubles(count), *s_error = guarded_doubles(count);
    double *l_expected = guarded_doubles(lanes), *l_error = guarded_doubles(lanes);
    double *o_expected = guarded_doubles(outputs), *o_error = guarded_doubles(outputs);
    for (size_t n = 0; n < lanes; n++) {
        m_new[n] = m_old[n];
        for (size_t j = 0; j < (size_t)keys; j++) {
            if (random_integer(&source, 0, 4) == 0)
                s[j * lanes + n] = -INFINITY;
            m_new[n] = fmaxf(m_new[n], s[j * lanes + n]);
        }
        double correction = exp((double)m_old[n] - m_new[n]);
        l_expected[n] = l[n] * correction;
        /* The difference m_old − m_new is rounded, and exp multiplies its error by its size. */
        double relative = 0x1p-24 * (fabs((double)m_old[n] - m_new[n]) + 8);
        l_error[n] = l_expected[n] * relative;
        for (size_t j = 0; j < (size_t)keys; j++) {
            double x = (double)s[j * lanes + n] - m_new[n];
            s_expected[j * lanes + n] = exp(x);
            s_error[j * lanes + n] = isinf(x) ? 0 : exp(x) * 0x1p-24 * (fabs(x) + 4);
            l_expected[n] += exp(x);
            l_error[n] += isinf(x) ? 0 : exp(x) * 0x1p-24 * (fabs(x) + 4 + (double)keys);
        }
        for (size_t c = 0; c < (size_t)d_v; c++) {
            o_expected[c * lanes + n] = output[c * lanes + n] * correction;
            o_error[c * lanes + n] = fabs(o_expected[c * lanes + n]) * relative;
        }
    }
    kernels->softmax(s, panel_lanes, keys, m_old, m_new, l, l_rest, output, d_v);
    test_context("lanes %d, keys %d, d_v %d, side %d", panel_lanes, (int)keys, (int)d_v, (int)side);
    CHECK_NEAR(s, s_expected, 1, s_error, count);
    CHECK_NEAR(l, l_expected, 1, l_error, lanes);
    CHECK_NEAR(output, o_expected, 1, o_error, outputs);
    guarded_release_all();
}

static void blocks_of_all_sizes(const struct attn_kernels *kernels, int panel_lanes)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 6, 7, 12, 13, 95, 96};
    for (size_t a = 0; a < COUNT(sizes); a++)
        for (size_t b = 0; b < COUNT(sizes); b++)
            for (size_t side = 0; side < COUNT(sides); side++)
                if (test_takes_one_in(5))
                    check_block(kernels, panel_lanes, sizes[a], sizes[b], sides[side]);
}

static void lanes_without_a_key_stay_empty(const struct attn_kernels *kernels, int panel_lanes)
{
    enum { KEYS = 7, D_V = 5 };
    size_t lanes = (size_t)panel_lanes;
    for (size_t lane = 0; lane < lanes; lane++) {
        float *s = filled_panel(KEYS * lanes, -INFINITY), *output = filled_panel(D_V * lanes, 0);
        float *m_old = filled_panel(lanes, -INFINITY), *m_new = filled_panel(lanes, -INFINITY);
        float *l = filled_panel(lanes, 0), *l_rest = filled_panel(lanes, 0);
        for (size_t j = 0; j < KEYS; j++)
            s[j * lanes + lane] = 3;
        m_new[lane] = 3;
        kernels->softmax(s, panel_lanes, KEYS, m_old, m_new, l, l_rest, output, D_V);
        test_context("only lane %zu of %zu has keys", lane, lanes);
        CHECK_ALL(output, 0, D_V * lanes);
        for (size_t n = 0; n < lanes; n++)
            CHECK_WITHIN(l[n], n == lane ? KEYS : 0, 0);
        for (size_t i = 0; i < KEYS * lanes; i++)
            CHECK_WITHIN(s[i], i % lanes == lane ? 1 : 0, 0);
    }
}

/* A hundred thousand blocks of one key each: a plain float sum would be off by far more. */
static void long_sums_lose_nothing(const struct attn_kernels *kernels, int panel_lanes)
{
    enum { BLOCKS = 100000 };
    size_t lanes = (size_t)panel_lanes;
    float *m = filled_panel(lanes, 0), *l = filled_panel(lanes, 0),
          *l_rest = filled_panel(lanes, 0);
    float *s = guarded_panel(lanes, GUARD_BEHIND);
    double expected = 0;
    for (int block = 0; block < BLOCKS; block++) {
        for (size_t n = 0; n < lanes; n++)
            s[n] = -0.3f;
        kernels->softmax(s, panel_lanes, 1, m, m, l, l_rest, NULL, 0);
        expected += (double)s[0];
    }
    for (size_t n = 0; n < lanes; n++)
        CHECK_WITHIN(l[n], expected, expected * 0x1p-24);
}

static void unmoved_lanes_keep_their_bits(const struct attn_kernels *kernels, int panel_lanes)
{
    enum { D_V = 9 };
    size_t lanes = (size_t)panel_lanes;
    struct random_source source = {8};
    float *s = filled_panel(lanes, -INFINITY), *output = guarded_panel(D_V * lanes, GUARD_BEHIND);
    float *m_old = filled_panel(lanes, 1.5f), *m_new = filled_panel(lanes, 1.5f);
    float *l = guarded_panel(lanes, GUARD_BEHIND), *l_rest = filled_panel(lanes, 0);
    float *before = guarded_panel(D_V * lanes, GUARD_BEHIND);
    float *sum_before = guarded_panel(lanes, GUARD_BEHIND);
    random_floats(&source, -5, 5, output, D_V * lanes);
    random_floats(&source, 1, 5, l, lanes);
    memcpy(before, output, D_V * lanes * sizeof *output);
    memcpy(sum_before, l, lanes * sizeof *l);
    m_new[0] = s[0] = 2.5f;
    kernels->softmax(s, panel_lanes, 1, m_old, m_new, l, l_rest, output, D_V);
    CHECK_SAME_BITS(l + 1, sum_before + 1, lanes - 1);
    for (size_t c = 0; c < D_V; c++)
        CHECK_SAME_BITS(output + c * lanes + 1, before + c * lanes + 1, lanes - 1);
    CHECK(l[0] != sum_before[0]);
}

static void lanes_of_softmax_are_independent(const struct attn_kernels *kernels, int panel_lanes)
{
    enum { KEYS = 13, D_V = 6 };
    size_t lanes = (size_t)panel_lanes;
    const float strange[] = {NAN, INFINITY, -INFINITY, -3e38f, 0};
    float *results[2][4] = {{NULL}};
    for (size_t lane = 0; lane < lanes; lane++) {
        for (int disturbed = 0; disturbed < 2; disturbed++) {
            struct random_source source = {9};
            float *s = guarded_panel(KEYS * lanes, GUARD_BEHIND);
            float *output = guarded_panel(D_V * lanes, GUARD_BEHIND);
            float *m_old = guarded_panel(lanes, GUARD_BEHIND), *m_new = filled_panel(lanes, 4);
            float *l = guarded_panel(lanes, GUARD_BEHIND), *l_rest = filled_panel(lanes, 0);
            random_floats(&source, -8, 4, s, KEYS * lanes);
            random_floats(&source, -1, 1, output, D_V * lanes);
            random_floats(&source, -4, 4, m_old, lanes);
            random_floats(&source, 0, 9, l, lanes);
            for (size_t i = 0; disturbed && i < KEYS * lanes; i++)
                if (i % lanes != lane)
                    s[i] = strange[i % COUNT(strange)];
            for (size_t n = 0; disturbed && n < lanes; n++)
                if (n != lane)
                    l[n] = m_old[n] = m_new[n] = output[n] = strange[n % COUNT(strange)];
            float *weights = guarded_panel(KEYS * lanes, GUARD_BEHIND);
            memcpy(weights, s, KEYS * lanes * sizeof *s);
            kernels->weights(weights, panel_lanes, KEYS, m_new, l);
            kernels->softmax(s, panel_lanes, KEYS, m_old, m_new, l, l_rest, output, D_V);
            results[disturbed][0] = s;
            results[disturbed][1] = output;
            results[disturbed][2] = l;
            results[disturbed][3] = weights;
        }
        const size_t rows[] = {KEYS, D_V, 1, KEYS};
        for (int which = 0; which < 4; which++)
            for (size_t row = 0; row < rows[which]; row++) {
                test_context("lane %zu, row %zu of array %d", lane, row, which);
                CHECK_SAME_BITS(results[1][which] + row * lanes + lane,
                                results[0][which] + row * lanes + lane, 1);
            }
        guarded_release_all();
    }
}

static void weights_are_rebuilt(const struct attn_kernels *kernels, int panel_lanes)
{
    size_t lanes = (size_t)panel_lanes;
    static const size_t sizes[] = {0, 1, 2, 3, 5, 6, 7, 12, 13, 95, 96};
    struct random_source source = {10};
    for (size_t a = 0; a < COUNT(sizes) * 2; a++) {
        enum guard_side side = sides[a % 2];
        size_t count = sizes[a / 2] * lanes;
        float *s = guarded_panel(count, side);
        float *m = guarded_panel(lanes, side), *l = guarded_panel(lanes, side);
        random_floats(&source, -20, 5, s, count);
        random_floats(&source, 5, 10, m, lanes);
        random_floats(&source, 1, 100, l, lanes);
        m[0] = -INFINITY; /* a row without a key */
        l[0] = 0;
        double *expected = guarded_doubles(count), *error = guarded_doubles(count);
        for (size_t i = 0; i < count; i++) {
            size_t n = i % lanes;
            if (random_integer(&source, 0, 4) == 0)
                s[i] = -INFINITY;
            double x = (double)s[i] - m[n];
            expected[i] = isinf(s[i]) || l[n] == 0 ? 0 : exp(x) / l[n];
            error[i] = expected[i] == 0 ? 0 : expected[i] * 0x1p-24 * (fabs(x) + 5);
        }
        kernels->weights(s, panel_lanes, (int64_t)sizes[a / 2], m, l);
        test_context("keys %zu, side %d", sizes[a / 2], (int)side);
        CHECK_NEAR(s, expected, 1, error, count);
    }
}

/* A lane's bits are the same in a panel of one vector and of two. */
static void lanes_are_the_same_in_both_panels(const struct attn_kernels *kernels)
{
    enum { D_V = 6, ROUNDS = 40 };
    int lanes = 2 * kernels->vector_lanes;
    size_t count = (size_t)lanes;
    struct random_source source = {11};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t keys = random_integer(&source, 0, ATTN_KEY_BLOCK);
        float *s = guarded_panel((size_t)keys * count, GUARD_BEHIND);
        float *m_old = guarded_panel(count, GUARD_BEHIND), *m_new = filled_panel(count, 4);
        float *l = guarded_panel(count, GUARD_BEHIND), *l_rest = filled_panel(count, 1e-9f);
        float *output = random_panel(&source, D_V * lanes, GUARD_BEHIND);
        random_floats(&source, -90, 4, s, (size_t)keys * count);
        random_floats(&source, -4, 4, m_old, count);
        random_floats(&source, 1, 9, l, count);
        /* Lanes whose maximum stays, and lanes without a key before. */
        for (size_t n = 0; n < count; n++) {
            int64_t kind = random_integer(&source, 0, 3);
            m_old[n] = kind == 0 ? m_new[n] : kind == 1 ? -INFINITY : m_old[n];
        }
        float *s_before = panel_copy(s, keys, lanes), *weights = panel_copy(s, keys, lanes);
        float *l_before = panel_copy(l, 1, lanes), *rest_before = panel_copy(l_rest, 1, lanes);
        float *output_before = panel_copy(output, D_V, lanes);
        kernels->weights(weights, lanes, keys, m_new, l);
        kernels->softmax(s, lanes, keys, m_old, m_new, l, l_rest, output, D_V);
        test_context("round %d, keys %d", round, (int)keys);
        for (int half = 0; half < 2; half++) {
            float *s_one = panel_half(s_before, keys, lanes, half);
            float *weights_one = panel_half(s_before, keys, lanes, half);
            float *l_one = panel_half(l_before, 1, lanes, half);
            float *rest_one = panel_half(rest_before, 1, lanes, half);
            float *output_one = panel_half(output_before, D_V, lanes, half);
            float *m_one = panel_half(m_new, 1, lanes, half);
            kernels->weights(weights_one, lanes / 2, keys, m_one, l_one);
            kernels->softmax(s_one, lanes / 2, keys, panel_half(m_old, 1, lanes, half), m_one,
                             l_one, rest_one, output_one, D_V);
            CHECK_SAME_HALF(weights_one, weights, keys, lanes, half);
            CHECK_SAME_HALF(s_one, s, keys, lanes, half);
            CHECK_SAME_HALF(l_one, l, 1, lanes, half);
            CHECK_SAME_HALF(rest_one, l_rest, 1, lanes, half);
            CHECK_SAME_HALF(output_one, output, D_V, lanes, half);
        }
        guarded_release_all();
    }
}

int main(void)
{
    panel_each("exp is within 2 ULP on [-87, 0]", exp_is_within_two_ulps);
    panel_each("exp at 0, -inf and below the normal numbers", exp_at_the_ends);
    panel_each("exp of any NaN is NaN", exp_of_nan_is_nan);
    panel_each("long sums lose nothing", long_sums_lose_nothing);
    panel_each("softmax of blocks of all sizes", blocks_of_all_sizes);
    panel_each("softmax leaves lanes without a key empty", lanes_without_a_key_stay_empty);
    panel_each("softmax keeps the bits of lanes whose maximum stays",
               unmoved_lanes_keep_their_bits);
    panel_each("lanes of softmax and weights are independent", lanes_of_softmax_are_independent);
    panel_each("weights from m and l", weights_are_rebuilt);
    kernels_each("a lane's weights are the same in both panels", lanes_are_the_same_in_both_panels);
    return test_finish();
}
