/* bias_gelu and layer_norm. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/kernel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t widths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 384};

static double gelu(double x)
{
    return x * 0.5 * erfc(-x * 0.70710678118654752440);
}

static void check_gelu(const struct attn_kernels *kernels, int64_t rows, int64_t width, float range,
                       enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + width)};
    size_t count = (size_t)(rows * width);
    float *x = guarded_floats(count, side), *bias = guarded_floats((size_t)width, side);
    random_floats(&source, -range, range, x, count);
    random_floats(&source, -1, 1, bias, (size_t)width);
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    for (size_t i = 0; i < count; i++) {
        float shifted = x[i] + bias[i % (size_t)width];
        expected[i] = gelu(shifted);
        error[i] = 2e-7 * fmax(1, fabs((double)shifted));
    }
    kernels->bias_gelu(x, bias, rows, width);
    test_context("rows %d, width %d, range %g", (int)rows, (int)width, (double)range);
    CHECK_NEAR(x, expected, 1, error, count);
    guarded_release_all();
}

static void gelu_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t a = 0; a < COUNT(widths); a++)
        for (int64_t rows = 0; rows < 4; rows++)
            for (size_t side = 0; side < COUNT(sides); side++)
                check_gelu(kernels, rows, widths[a], 6, sides[side]);
    check_gelu(kernels, 60, 1000, 4, GUARD_BEHIND);
    check_gelu(kernels, 60, 1000, 20, GUARD_BEHIND);
    check_gelu(kernels, 1, 1000, 0.01f, GUARD_BEHIND);
    check_gelu(kernels, 1, 1000, 1e4f, GUARD_BEHIND);
}

static void gelu_at_the_ends(attn_isa isa)
{
    const float values[] = {0, -0.0f, 1e-30f, -1e-30f, 88, -88, 1e30f, -1e30f, INFINITY, NAN};
    float *x = guarded_floats(COUNT(values), GUARD_BEHIND);
    float *bias = guarded_floats(COUNT(values), GUARD_BEHIND);
    memcpy(x, values, sizeof values);
    memset(bias, 0, sizeof values);
    attn_kernels_for(isa)->bias_gelu(x, bias, 1, COUNT(values));
    for (size_t i = 0; i < COUNT(values); i++) {
        double expected = isinf(values[i]) ? (double)INFINITY : gelu(values[i]);
        test_context("gelu(%g)", (double)values[i]);
        CHECK_WITHIN(x[i], expected, 2e-7 * fmax(1, fabs((double)values[i])));
    }
}

static void check_layer_norm(const struct attn_kernels *kernels, int64_t rows, int64_t width,
                             bool with_bias, float level, float spread, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + width)};
    size_t count = (size_t)(rows * width), columns = (size_t)width;
    float *x = guarded_floats(count, side), *y = guarded_floats(count, side);
    float *bias = guarded_floats(columns, side);
    float *gain = guarded_floats(columns, side), *shift = guarded_floats(columns, side);
    random_floats(&source, level - spread, level + spread, x, count);
    random_floats(&source, -spread, spread, bias, columns);
    random_floats(&source, -2, 2, gain, columns);
    random_floats(&source, -1, 1, shift, columns);
    const float epsilon = 1e-12f;
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    double *sum = guarded_doubles(columns);
    for (size_t i = 0; i < (size_t)rows; i++) {
        double mean = 0, variance = 0, largest = 0;
        for (size_t c = 0; c < columns; c++) {
            sum[c] = x[i * columns + c];
            sum[c] += with_bias ? bias[c] : 0;
            mean += sum[c] / (double)width;
            largest = fmax(largest, fabs(sum[c]) + 2 * (double)spread);
        }
        for (size_t c = 0; c < columns; c++)
            variance += (sum[c] - mean) * (sum[c] - mean) / (double)width;
        double inverse = 1 / sqrt(variance + epsilon);
        for (size_t c = 0; c < columns; c++) {
            double y_exact = (sum[c] - mean) * inverse;
            expected[i * columns + c] = y_exact * gain[c] + shift[c];
            /* Each addition is off by 2⁻²⁴ of the largest number, and so is the mean; what is left
             * after subtracting it is divided by the deviation. */
            error[i * columns + c] =
                0x1p-24 * (largest * inverse * (1 + fabs(y_exact)) + 1 + fabs(y_exact)) *
                    fabs((double)gain[c]) +
                0x1p-24 * fabs((double)shift[c]);
        }
    }
    kernels->layer_norm(x, with_bias ? bias : NULL, gain, shift, epsilon, rows, width, y);
    test_context("rows %d, width %d, %s bias, %g ± %g", (int)rows, (int)width,
                 with_bias ? "with" : "without", (double)level, (double)spread);
    CHECK_NEAR(y, expected, 8, error, count);
    guarded_release_all();
}

static void layer_norm_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t a = 0; a < COUNT(widths); a++)
        for (int64_t rows = 0; rows < 4; rows++)
            for (int with_bias = 0; with_bias < 2; with_bias++)
                for (size_t side = 0; side < COUNT(sides); side++)
                    check_layer_norm(kernels, rows, widths[a], with_bias, 0.25f, 2, sides[side]);
}

/* E(x²) − E(x)² would lose everything here. */
static void layer_norm_of_a_small_variance(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t a = 1; a < COUNT(widths); a++) {
        check_layer_norm(kernels, 2, widths[a], false, 1000, 0.5f, GUARD_BEHIND);
        check_layer_norm(kernels, 2, widths[a], false, -300, 0.01f, GUARD_BEHIND);
    }
}

static void layer_norm_of_a_constant(attn_isa isa)
{
    enum { WIDTH = 37 };
    float *x = guarded_floats(WIDTH, GUARD_BEHIND), *y = guarded_floats(WIDTH, GUARD_BEHIND);
    float *gain = guarded_floats(WIDTH, GUARD_BEHIND), *shift = guarded_floats(WIDTH, GUARD_BEHIND);
    for (int c = 0; c < WIDTH; c++) {
        x[c] = 0.5f;
        gain[c] = 2;
        shift[c] = -3;
    }
    attn_kernels_for(isa)->layer_norm(x, NULL, gain, shift, 1e-5f, 1, WIDTH, y);
    CHECK_ALL(y, -3, WIDTH);
}

int main(void)
{
    isa_each("gelu at all sizes", gelu_of_all_sizes);
    isa_each("gelu at 0, far out and of what is not finite", gelu_at_the_ends);
    isa_each("layer_norm at all sizes", layer_norm_of_all_sizes);
    isa_each("layer_norm of a small variance", layer_norm_of_a_small_variance);
    isa_each("layer_norm of a constant row", layer_norm_of_a_constant);
    return test_finish();
}
