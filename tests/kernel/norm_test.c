/* layer_norm, rms_norm and their backward passes against their definitions in double. */
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

static void check_rms_norm(const struct attn_kernels *kernels, int64_t rows, int64_t width,
                           float spread, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + width)};
    size_t count = (size_t)(rows * width), columns = (size_t)width;
    float *x = guarded_floats(count, side), *y = guarded_floats(count, side);
    float *gain = guarded_floats(columns, side);
    random_floats(&source, -spread, 2 * spread, x, count);
    random_floats(&source, -2, 2, gain, columns);
    const float epsilon = 1e-6f;
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    for (size_t i = 0; i < (size_t)rows; i++) {
        double square = 0;
        for (size_t c = 0; c < columns; c++)
            square += (double)x[i * columns + c] * (double)x[i * columns + c] / (double)width;
        for (size_t c = 0; c < columns; c++) {
            expected[i * columns + c] =
                (double)x[i * columns + c] / sqrt(square + (double)epsilon) * (double)gain[c];
            error[i * columns + c] = 0x1p-24 * fabs(expected[i * columns + c]);
        }
    }
    kernels->rms_norm(x, gain, epsilon, rows, width, y);
    test_context("rows %d, width %d, %g", (int)rows, (int)width, (double)spread);
    CHECK_NEAR(y, expected, 6, error, count);
    kernels->rms_norm(x, gain, epsilon, rows, width, x);
    CHECK_SAME_BITS(x, y, count);
    guarded_release_all();
}

static void rms_norm_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t a = 0; a < COUNT(widths); a++)
        for (int64_t rows = 0; rows < 4; rows++)
            for (size_t side = 0; side < COUNT(sides); side++) {
                check_rms_norm(kernels, rows, widths[a], 2, sides[side]);
                check_rms_norm(kernels, rows, widths[a], 1e-3f, sides[side]);
            }
}

/* One problem of a backward pass, and what is right in double, with a bound for the rounding. */
struct backward {
    bool centred; /* layer norm; else RMS norm */
    int64_t rows, width;
    float *x, *dy, *gain, *before; /* dx is added to `before` */
    double *dx, *d_gain, *d_shift;
    double *dx_error, *d_gain_error, *d_shift_error;
};

static const float epsilon = 1e-6f;

static void expect_row(struct backward *problem, int64_t i)
{
    const int64_t width = problem->width, begin = i * width;
    const float *x = problem->x + begin, *dy = problem->dy + begin;
    double mean = 0, square = 0, mean_g = 0, mean_gx = 0, largest_g = 0;
    for (int64_t c = 0; c < width; c++)
        mean += problem->centred ? (double)x[c] / (double)width : 0;
    for (int64_t c = 0; c < width; c++)
        square += ((double)x[c] - mean) * ((double)x[c] - mean) / (double)width;
    const double r = 1 / sqrt(square + (double)epsilon);
    for (int64_t c = 0; c < width; c++) {
        double g = (double)dy[c] * (double)problem->gain[c];
        mean_g += problem->centred ? g / (double)width : 0;
        mean_gx += g * ((double)x[c] - mean) * r / (double)width;
        largest_g = fmax(largest_g, fabs(g));
    }
    for (int64_t c = 0; c < width; c++) {
        double normal = ((double)x[c] - mean) * r, before = (double)problem->before[begin + c];
        double dx = r * ((double)dy[c] * (double)problem->gain[c] - mean_g - normal * mean_gx);
        problem->dx[begin + c] = before + dx;
        /* Of a mean far from 0 nothing is lost: what rounds it is taken out again. */
        double size = 1 + fabs(normal), off = 0x1p-23;
        problem->dx_error[begin + c] =
            off * r * largest_g * size * size + 0x1p-24 * fabs(before + dx);
        problem->d_gain[c] += (double)dy[c] * normal;
        problem->d_gain_error[c] += off * fabs((double)dy[c]) * size + 0x1p-24;
        problem->d_shift[c] += (double)dy[c];
        problem->d_shift_error[c] += 0x1p-24 * (1 + fabs(problem->d_shift[c]));
    }
}

static struct backward make_backward(bool centred, int64_t rows, int64_t width, float level,
                                     float spread, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + width)};
    const size_t count = (size_t)(rows * width), columns = (size_t)width;
    struct backward problem = {
        centred,
        rows,
        width,
        guarded_floats(count, side),
        guarded_floats(count, side),
        guarded_floats(columns, side),
        guarded_floats(count, side),
        guarded_doubles(count),
        guarded_doubles(columns),
        guarded_doubles(columns),
        guarded_doubles(count),
        guarded_doubles(columns),
        guarded_doubles(columns),
    };
    random_floats(&source, level - spread, level + spread, problem.x, count);
    random_floats(&source, -1, 1, problem.dy, count);
    random_floats(&source, -2, 2, problem.gain, columns);
    random_floats(&source, -1, 1, problem.before, count);
    /* What d_gain and d_shift are added to. */
    for (size_t c = 0; c < columns; c++) {
        problem.d_gain[c] = 0.5;
        problem.d_shift[c] = -0.25;
        problem.d_gain_error[c] = problem.d_shift_error[c] = 0x1p-24;
    }
    for (int64_t i = 0; i < rows; i++)
        expect_row(&problem, i);
    return problem;
}

static void run_backward(const struct attn_kernels *kernels, const struct backward *problem,
                         const struct attn_norm_gradient *gradient)
{
    if (problem->centred)
        kernels->layer_norm_backward(gradient, epsilon, problem->rows, problem->width);
    else
        kernels->rms_norm_backward(gradient, epsilon, problem->rows, problem->width);
}

static void check_backward(const struct attn_kernels *kernels, bool centred, int64_t rows,
                           int64_t width, float level, float spread, enum guard_side side)
{
    struct backward problem = make_backward(centred, rows, width, level, spread, side);
    const size_t count = (size_t)(rows * width), columns = (size_t)width;
    float *dx = guarded_floats(count, side);
    float *d_gain = guarded_floats(columns, side), *d_shift = guarded_floats(columns, side);
    for (size_t c = 0; c < columns; c++) {
        d_gain[c] = 0.5f;
        d_shift[c] = -0.25f;
    }
    struct attn_norm_gradient gradient = {problem.x, problem.dy, problem.gain, problem.before,
                                          dx,        d_gain,     d_shift};
    run_backward(kernels, &problem, &gradient);
    test_context("%s norm, rows %d, width %d, %g ± %g", centred ? "layer" : "RMS", (int)rows,
                 (int)width, (double)level, (double)spread);
    CHECK_NEAR(dx, problem.dx, 8, problem.dx_error, count);
    CHECK_NEAR(d_gain, problem.d_gain, 8, problem.d_gain_error, columns);
    CHECK_NEAR(d_shift, problem.d_shift, 8, problem.d_shift_error, columns);

    /* dx over what it is added to, and the sums not wanted. */
    gradient.dx = problem.before;
    gradient.d_gain = gradient.d_shift = NULL;
    run_backward(kernels, &problem, &gradient);
    CHECK_SAME_BITS(problem.before, dx, count);

    /* Written, beside and over dy. */
    gradient.added = NULL;
    gradient.dx = dx;
    run_backward(kernels, &problem, &gradient);
    gradient.dx = problem.dy;
    run_backward(kernels, &problem, &gradient);
    CHECK_SAME_BITS(problem.dy, dx, count);
    guarded_release_all();
}

static void backward_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (int centred = 0; centred < 2; centred++)
        for (size_t a = 0; a < COUNT(widths); a++)
            for (int64_t rows = 0; rows < 4; rows++)
                for (size_t side = 0; side < COUNT(sides); side++)
                    check_backward(kernels, centred, rows, widths[a], 0.25f, 2, sides[side]);
}

static void backward_of_a_small_variance(attn_isa isa)
{
    for (size_t a = 1; a < COUNT(widths); a++) {
        check_backward(attn_kernels_for(isa), true, 2, widths[a], 1000, 0.5f, GUARD_BEHIND);
        check_backward(attn_kernels_for(isa), true, 2, widths[a], -300, 0.05f, GUARD_BEHIND);
        check_backward(attn_kernels_for(isa), true, 2, widths[a], -4e6f, 8, GUARD_BEHIND);
    }
}

/* NaN in a row: in all of its dx, in its column's sums, and in no other row. */
static void backward_keeps_nan(attn_isa isa)
{
    enum { ROWS = 3, WIDTH = 37 };
    for (int centred = 0; centred < 2; centred++)
        for (int in_dy = 0; in_dy < 2; in_dy++) {
            struct backward problem = make_backward(centred, ROWS, WIDTH, 0, 1, GUARD_BEHIND);
            float dx[ROWS * WIDTH], d_gain[WIDTH] = {0}, d_shift[WIDTH] = {0};
            (in_dy ? problem.dy : problem.x)[WIDTH + 20] = NAN;
            struct attn_norm_gradient gradient = {problem.x, problem.dy, problem.gain, NULL,
                                                  dx,        d_gain,     d_shift};
            run_backward(attn_kernels_for(isa), &problem, &gradient);
            CHECK_ALL(dx + WIDTH, NAN, WIDTH);
            for (int c = 0; c < WIDTH; c++)
                CHECK(isfinite(dx[c]) && isfinite(dx[2 * WIDTH + c]));
            CHECK(isnan(d_gain[20]));
            guarded_release_all();
        }
}

int main(void)
{
    isa_each("layer_norm at all sizes", layer_norm_of_all_sizes);
    isa_each("layer_norm of a small variance", layer_norm_of_a_small_variance);
    isa_each("layer_norm of a constant row", layer_norm_of_a_constant);
    isa_each("rms_norm at all sizes", rms_norm_of_all_sizes);
    isa_each("backward at all sizes", backward_of_all_sizes);
    isa_each("backward of a small variance", backward_of_a_small_variance);
    isa_each("backward keeps NaN in its row", backward_keeps_nan);
    return test_finish();
}
