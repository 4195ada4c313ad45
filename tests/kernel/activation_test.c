/* activate, activate_backward, swiglu and swiglu_backward against their definitions in double. */
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
static const float ranges[] = {0.01f, 1, 6, 20, 100, 1e4f};

static double gelu(double x)
{
    return x * 0.5 * erfc(-x * 0.70710678118654752440);
}

static double gelu_slope(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

static double gelu_by_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double gelu_by_tanh_slope(double x)
{
    double t = tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + t) +
           0.5 * x * (1.0 - t * t) * 0.79788456080286535588 * (1.0 + 3.0 * 0.044715 * x * x);
}

static double rectified(double x)
{
    return x <= 0.0 ? 0.0 : x;
}

static double rectified_slope(double x)
{
    return x > 0.0 ? 1.0 : 0.0;
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double silu_slope(double x)
{
    double gate = 1.0 / (1.0 + exp(-x));
    return gate + x * gate * (1.0 - gate);
}

static const struct definition {
    const char *name;
    enum attn_activation activation;
    double (*value)(double x), (*slope)(double x);
} definitions[] = {
    {"gelu", ATTN_ACTIVATION_GELU_ERF, gelu, gelu_slope},
    {"gelu by tanh", ATTN_ACTIVATION_GELU_TANH, gelu_by_tanh, gelu_by_tanh_slope},
    {"relu", ATTN_ACTIVATION_RELU, rectified, rectified_slope},
    {"silu", ATTN_ACTIVATION_SILU, silu, silu_slope},
};

static void check_values(const struct attn_kernels *kernels, const struct definition *definition,
                         int64_t rows, int64_t width, float range, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 1000 + width)};
    size_t count = (size_t)(rows * width);
    float *x = guarded_floats(count, side), *bias = guarded_floats((size_t)width, side);
    float *y = guarded_floats(count, side);
    random_floats(&source, -range, range, x, count);
    random_floats(&source, -1, 1, bias, (size_t)width);
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    test_context("%s, rows %d, width %d, range %g", definition->name, (int)rows, (int)width,
                 (double)range);
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        for (size_t i = 0; i < count; i++) {
            float shifted = x[i] + (with_bias ? bias[i % (size_t)width] : 0.0f);
            expected[i] = definition->value((double)shifted);
            error[i] = 2e-7 * fmax(1, fabs((double)shifted));
        }
        kernels->activate(definition->activation, x, with_bias ? bias : NULL, rows, width, y);
        CHECK_NEAR(y, expected, 1, error, count);
    }
    kernels->activate(definition->activation, x, bias, rows, width, x);
    CHECK_SAME_BITS(x, y, count); /* in place */
    guarded_release_all();
}

static void check_slopes(const struct attn_kernels *kernels, const struct definition *definition,
                         int64_t count, float range, enum guard_side side)
{
    struct random_source source = {(uint64_t)count};
    size_t size = (size_t)count;
    float *x = guarded_floats(size, side), *dy = guarded_floats(size, side);
    float *dx = guarded_floats(size, side);
    random_floats(&source, -range, range, x, size);
    random_floats(&source, -2, 2, dy, size);
    double *expected = guarded_doubles(size), *error = guarded_doubles(size);
    for (size_t i = 0; i < size; i++) {
        expected[i] = (double)dy[i] * definition->slope((double)x[i]);
        error[i] = 3e-7 * fabs((double)dy[i]);
    }
    kernels->activate_backward(definition->activation, x, dy, count, dx);
    test_context("%s, %d numbers, range %g", definition->name, (int)count, (double)range);
    CHECK_NEAR(dx, expected, 1, error, size);
    kernels->activate_backward(definition->activation, x, dy, count, dy);
    CHECK_SAME_BITS(dy, dx, size);
    guarded_release_all();
}

static void values_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t n = 0; n < COUNT(definitions); n++) {
        for (size_t a = 0; a < COUNT(widths); a++)
            for (int64_t rows = 0; rows < 4; rows++)
                for (size_t side = 0; side < COUNT(sides); side++)
                    check_values(kernels, &definitions[n], rows, widths[a], 6, sides[side]);
        for (size_t r = 0; r < COUNT(ranges); r++)
            check_values(kernels, &definitions[n], 60, 1000, ranges[r], GUARD_BEHIND);
    }
}

static void slopes_of_all_sizes(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t n = 0; n < COUNT(definitions); n++) {
        check_slopes(kernels, &definitions[n], 0, 6, GUARD_BEHIND);
        for (size_t a = 0; a < COUNT(widths); a++)
            for (size_t side = 0; side < COUNT(sides); side++)
                check_slopes(kernels, &definitions[n], widths[a], 6, sides[side]);
        for (size_t r = 0; r < COUNT(ranges); r++)
            check_slopes(kernels, &definitions[n], 60000, ranges[r], GUARD_BEHIND);
    }
}

/* −inf gives 0, what the function tends to, and not the NaN of −inf·0. */
static void at_the_ends(attn_isa isa)
{
    const float values[] = {0,     -0.0f,  1e-30f,    -1e-30f,   88,       -88,
                            1e30f, -1e30f, 3.402e38f, -INFINITY, INFINITY, NAN};
    enum { VALUES = sizeof values / sizeof values[0] };
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (size_t n = 0; n < COUNT(definitions); n++) {
        float x[VALUES], one[VALUES], dx[VALUES];
        memcpy(x, values, sizeof values);
        for (int i = 0; i < VALUES; i++)
            one[i] = 1;
        kernels->activate_backward(definitions[n].activation, x, one, VALUES, dx);
        kernels->activate(definitions[n].activation, x, NULL, 1, VALUES, x);
        for (int i = 0; i < VALUES; i++) {
            double value = (double)values[i];
            bool infinite = isinf(values[i]);
            double y = infinite ? fmax(value, 0) : definitions[n].value(value);
            double slope = infinite ? (double)(value > 0) : definitions[n].slope(value);
            test_context("%s at %g", definitions[n].name, value);
            CHECK_WITHIN((double)x[i], y, 2e-7 * fmax(1, fabs(value)));
            if (isnan(values[i]))
                CHECK(isnan(dx[i]));
            else if (fabs(value) < 1e30)
                CHECK_WITHIN((double)dx[i], slope, 3e-7);
            else
                CHECK_WITHIN((double)dx[i], (double)(value > 0), 0);
        }
    }
}

static void check_swiglu(const struct attn_kernels *kernels, int64_t count, enum guard_side side)
{
    struct random_source source = {(uint64_t)count};
    size_t size = (size_t)count;
    float *gate = guarded_floats(size, side), *up = guarded_floats(size, side);
    float *dy = guarded_floats(size, side), *y = guarded_floats(size, side);
    float *d_gate = guarded_floats(size, side), *d_up = guarded_floats(size, side);
    random_floats(&source, -8, 8, gate, size);
    random_floats(&source, -2, 2, up, size);
    random_floats(&source, -2, 2, dy, size);
    double *expected[3], *error[3];
    for (int n = 0; n < 3; n++) {
        expected[n] = guarded_doubles(size);
        error[n] = guarded_doubles(size);
    }
    for (size_t i = 0; i < size; i++) {
        double g = (double)gate[i], u = (double)up[i], d = (double)dy[i];
        expected[0][i] = silu(g) * u;
        error[0][i] = 3e-7 * fabs(u) * fmax(1, fabs(g));
        expected[1][i] = d * u * silu_slope(g);
        error[1][i] = 3e-7 * fabs(d * u);
        expected[2][i] = d * silu(g);
        error[2][i] = 3e-7 * fabs(d) * fmax(1, fabs(g));
    }
    test_context("%d numbers", (int)count);
    kernels->swiglu(gate, up, count, y);
    CHECK_NEAR(y, expected[0], 1, error[0], size);
    kernels->swiglu_backward(gate, up, dy, count, d_gate, d_up);
    CHECK_NEAR(d_gate, expected[1], 1, error[1], size);
    CHECK_NEAR(d_up, expected[2], 1, error[2], size);

    /* Over the inputs, whichever. */
    kernels->swiglu_backward(gate, up, dy, count, dy, y);
    CHECK_SAME_BITS(dy, d_gate, size);
    CHECK_SAME_BITS(y, d_up, size);
    random_floats(&(struct random_source){(uint64_t)count}, -8, 8, gate, size);
    kernels->swiglu(gate, up, count, y);
    kernels->swiglu(gate, up, count, gate);
    CHECK_SAME_BITS(gate, y, size);
    guarded_release_all();
}

static void swiglu_of_all_sizes(attn_isa isa)
{
    for (size_t a = 0; a < COUNT(widths); a++)
        for (size_t side = 0; side < COUNT(sides); side++)
            check_swiglu(attn_kernels_for(isa), widths[a], sides[side]);
    check_swiglu(attn_kernels_for(isa), 0, GUARD_BEHIND);
    check_swiglu(attn_kernels_for(isa), 5000, GUARD_BEHIND);
}

int main(void)
{
    isa_each("values at all sizes", values_of_all_sizes);
    isa_each("derivatives at all sizes", slopes_of_all_sizes);
    isa_each("at 0, far out and of what is not finite", at_the_ends);
    isa_each("swiglu and its gradients at all sizes", swiglu_of_all_sizes);
    return test_finish();
}
