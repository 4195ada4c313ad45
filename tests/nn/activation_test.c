#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "differences.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/activation.h"

static void check_case(const struct compute *compute, const char *name, enum activation activation)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, name);
    size_t count;
    float *x = case_numbers(case_field(one, "input", "x"), &count);
    float *y = case_numbers(case_field(one, "expected", "y"), NULL);
    activation_forward(compute, activation, 1, (int64_t)count, NULL, x);
    assert_near(x, y, count, json_number_value(case_field(one, "tolerance", NULL)));
    free(x);
    free(y);
    json_decref(file);
}

static void handed_cases(const struct compute *compute)
{
    check_case(compute, "gelu_exact", ACTIVATION_GELU_ERF);
    check_case(compute, "gelu_tanh", ACTIVATION_GELU_TANH);
}

static void test_handed_cases(void **state)
{
    (void)state;
    each_isa(1, handed_cases);
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double gelu_by_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double rectified(double x)
{
    return x > 0.0 ? x : 0.0;
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

/* Values close to each other, over and far beyond the range where the function bends. */
static void follow(const struct compute *compute, enum activation activation,
                   double (*definition)(double))
{
    enum { COUNT = 400001 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    const double ranges[] = {0.01, 1.0, 16.0, 1e6};
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        for (int n = 0; n < COUNT; n++)
            x[n] = y[n] = (float)(ranges[r] * (2.0 * n / (COUNT - 1) - 1.0));
        activation_forward(compute, activation, 1, COUNT, NULL, y);
        for (int n = 0; n < COUNT; n++) {
            double error = fabs((double)y[n] - definition((double)x[n]));
            if (!(error <= 2e-7 * fmax(1.0, fabs((double)x[n]))))
                fail_msg("activation %d of %.9g is %.9g", (int)activation, (double)x[n],
                         (double)y[n]);
        }
    }
    free(x);
    free(y);
}

static void definitions(const struct compute *compute)
{
    follow(compute, ACTIVATION_GELU_ERF, gelu);
    follow(compute, ACTIVATION_GELU_TANH, gelu_by_tanh);
    follow(compute, ACTIVATION_RELU, rectified);
    follow(compute, ACTIVATION_SILU, silu);
}

static void test_definitions(void **state)
{
    (void)state;
    each_isa(2, definitions);
}

/* The bias goes by column at widths on and off a vector's end, and each row has its own numbers. */
static void bias_by_column(const struct compute *compute)
{
    for (int64_t width = 1; width <= 37; width++)
        for (int activation = ACTIVATION_GELU_ERF; activation <= ACTIVATION_SILU; activation++) {
            enum { ROWS = 3 };
            float x[ROWS * 37], sums[ROWS * 37], bias[37];
            for (int64_t c = 0; c < width; c++)
                bias[c] = (float)c * 0.25f - 3.0f;
            for (int64_t n = 0; n < ROWS * width; n++) {
                x[n] = (float)(n % 11) * 0.5f - 2.0f;
                sums[n] = x[n] + bias[n % width];
            }
            activation_forward(compute, (enum activation)activation, ROWS, width, bias, x);
            activation_forward(compute, (enum activation)activation, ROWS, width, NULL, sums);
            assert_memory_equal(x, sums, (size_t)(ROWS * width) * sizeof *x);
        }
}

static void test_bias_by_column(void **state)
{
    (void)state;
    each_isa(1, bias_by_column);
}

static void nan_stays(const struct compute *compute)
{
    for (int activation = ACTIVATION_GELU_ERF; activation <= ACTIVATION_SILU; activation++) {
        float x[] = {1.0f, NAN, -1.0f, INFINITY};
        activation_forward(compute, (enum activation)activation, 1, 4, NULL, x);
        assert_true(isnan(x[1]));
        assert_true(isfinite(x[0]) && isfinite(x[2]));
        assert_true(x[3] == INFINITY);
    }
}

static void test_nan_stays(void **state)
{
    (void)state;
    each_isa(1, nan_stays);
}

enum { HEIGHT = 3, WIDTH = 37, COUNT = HEIGHT * WIDTH };

/* Σ dy·y with x = gate and up, one behind the other. */
struct weighted {
    const float *dy;
    double (*definition)(double);
};

static double activated(const double *x, const void *user)
{
    const struct weighted *weighted = user;
    double sum = 0.0;
    for (int n = 0; n < COUNT; n++)
        sum += (double)weighted->dy[n] * weighted->definition(x[n]);
    return sum;
}

static double gated(const double *x, const void *user)
{
    const struct weighted *weighted = user;
    double sum = 0.0;
    for (int n = 0; n < COUNT; n++)
        sum += (double)weighted->dy[n] * silu(x[n]) * x[COUNT + n];
    return sum;
}

static void gradients(const struct compute *compute)
{
    float x[2 * COUNT], dy[COUNT], gradient[2 * COUNT], y[COUNT], in_place[COUNT];
    for (int n = 0; n < 2 * COUNT; n++)
        x[n] = 5.0f * sinf((float)n * 0.7f + 0.1f);
    for (int n = 0; n < COUNT; n++)
        dy[n] = cosf((float)n * 1.3f);
    double *wide = in_double(x, 2 * COUNT);
    double (*const definitions[])(double) = {gelu, gelu_by_tanh, rectified, silu};
    for (int a = ACTIVATION_GELU_ERF; a <= ACTIVATION_SILU; a++) {
        const enum activation activation = (enum activation)a;
        const struct weighted weighted = {dy, definitions[a]};
        activation_backward(compute, activation, HEIGHT, WIDTH, x, dy, gradient);
        assert_gradient(gradient, activated, wide, COUNT, &weighted, 1e-6);

        memcpy(in_place, dy, sizeof dy);
        activation_backward(compute, activation, HEIGHT, WIDTH, x, in_place, in_place);
        assert_memory_equal(in_place, gradient, sizeof in_place);

        activation_apply(compute, activation, HEIGHT, WIDTH, x, y);
        memcpy(in_place, x, sizeof in_place);
        activation_forward(compute, activation, HEIGHT, WIDTH, NULL, in_place);
        assert_memory_equal(y, in_place, sizeof y);
    }
    const struct weighted weighted = {dy, silu};
    swiglu_backward(compute, HEIGHT, WIDTH, x, x + COUNT, dy, gradient, gradient + COUNT);
    assert_gradient(gradient, gated, wide, 2 * COUNT, &weighted, 5e-6);
    swiglu_forward(compute, HEIGHT, WIDTH, x, x + COUNT, y);
    for (int n = 0; n < COUNT; n++)
        assert_true(fabs((double)y[n] - silu(wide[n]) * wide[COUNT + n]) <= 5e-6);
    free(wide);
}

static void test_gradients(void **state)
{
    (void)state;
    each_isa(2, gradients);
}

enum { MANY_ROWS = 97, MANY_COLUMNS = 1537, MANY = MANY_ROWS * MANY_COLUMNS };

static void all_of_many(const struct compute *compute, float *result)
{
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    for (int n = 0; n < MANY; n++)
        x[n] = (float)(n % 1001) * 0.01f - 5.0f;
    for (int a = ACTIVATION_GELU_ERF; a <= ACTIVATION_SILU; a++) {
        const enum activation activation = (enum activation)a;
        activation_apply(compute, activation, MANY_ROWS, MANY_COLUMNS, x, result);
        activation_backward(compute, activation, MANY_ROWS, MANY_COLUMNS, x, x, result + MANY);
        result += 2 * MANY;
    }
    swiglu_forward(compute, MANY_ROWS, MANY_COLUMNS, x, x, result);
    swiglu_backward(compute, MANY_ROWS, MANY_COLUMNS, x, x, x, result + MANY, result + 2 * MANY);
    free(x);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count(11 * MANY, all_of_many);
}

static void test_names(void **state)
{
    (void)state;
    const struct {
        const char *name;
        enum activation activation;
    } known[] = {
        {"gelu", ACTIVATION_GELU_ERF},
        {"gelu_new", ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
        {"gelu_fast", ACTIVATION_GELU_TANH},
        {"relu", ACTIVATION_RELU},
        {"silu", ACTIVATION_SILU},
        {"swish", ACTIVATION_SILU},
    };
    enum activation activation;
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++) {
        assert_true(activation_from_name(known[n].name, &activation));
        assert_int_equal(activation, known[n].activation);
    }
    const char *const unknown[] = {"snake", "GELU", "gelu ", "quick_gelu", "relu6", "swiglu", ""};
    for (size_t n = 0; n < sizeof unknown / sizeof unknown[0]; n++)
        assert_false(activation_from_name(unknown[n], &activation));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),   cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_bias_by_column), cmocka_unit_test(test_nan_stays),
        cmocka_unit_test(test_gradients),      cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
