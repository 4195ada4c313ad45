#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/layer_norm.h"

static void handed_case(const struct compute *compute)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "small_variance_eps_1e-12");
    size_t width;
    float *gain = case_numbers(case_field(one, "input", "gain"), &width);
    float *shift = case_numbers(case_field(one, "input", "bias"), NULL);
    float *x = case_numbers(case_field(one, "input", "x"), NULL);
    float *y = case_numbers(case_field(one, "expected", "y"), NULL);
    struct layer_norm layer = {gain, shift, (int64_t)width,
                               (float)json_number_value(case_field(one, "input", "eps"))};
    layer_norm_forward(compute, &layer, 1, x, NULL, x);
    assert_near(x, y, width, json_number_value(case_field(one, "tolerance", NULL)));
    free(gain);
    free(shift);
    free(x);
    free(y);
    json_decref(file);
}

static void test_handed_case(void **state)
{
    (void)state;
    each_isa(1, handed_case);
}

enum { ROWS = 5, LARGEST = 1031 };

/* Arrays of one problem, and what is right in double. */
struct problem {
    float x[ROWS * LARGEST], bias[LARGEST];
    float gain[LARGEST], shift[LARGEST];
    float y[ROWS * LARGEST];
};

static void fill(struct problem *problem, int64_t width, float level, float spread)
{
    for (int64_t n = 0; n < ROWS * width; n++)
        problem->x[n] = level + spread * sinf((float)n * 0.7f);
    for (int64_t c = 0; c < width; c++) {
        problem->bias[c] = spread * sinf((float)c);
        problem->gain[c] = 1.0f + 0.5f * cosf((float)c);
        problem->shift[c] = 0.25f * sinf((float)c * 2.0f);
    }
}

/* Against double, of the float sum that enters; the bound is `tolerance` for numbers of about 1. */
static void check(const struct problem *problem, int64_t width, bool with_bias, float epsilon,
                  double tolerance)
{
    for (int64_t i = 0; i < ROWS; i++) {
        const float *x = problem->x + i * width;
        double input[LARGEST], sum = 0.0, squares = 0.0;
        for (int64_t c = 0; c < width; c++) {
            input[c] = (double)(x[c] + (with_bias ? problem->bias[c] : 0.0f));
            sum += input[c];
        }
        double mean = sum / (double)width;
        for (int64_t c = 0; c < width; c++)
            squares += (input[c] - mean) * (input[c] - mean);
        double deviation = sqrt(squares / (double)width + (double)epsilon);
        for (int64_t c = 0; c < width; c++) {
            double expected = (input[c] - mean) / deviation * (double)problem->gain[c] +
                              (double)problem->shift[c];
            double error = fabs((double)problem->y[i * width + c] - expected);
            if (!(error <= tolerance * (1.0 + fabs(expected))))
                fail_msg("width %d, row %d, column %d: %.9g, expected %.9g", (int)width, (int)i,
                         (int)c, (double)problem->y[i * width + c], expected);
        }
    }
}

static void sizes(const struct compute *compute)
{
    static struct problem problem;
    const int64_t widths[] = {2, 3, 7, 8, 9, 31, 32, 33, 40, 63, 384, 385, 768, LARGEST};
    const float epsilons[] = {1e-12f, 1e-5f};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (int with_bias = 0; with_bias < 2; with_bias++)
            for (int e = 0; e < 2; e++) {
                struct layer_norm layer = {problem.gain, problem.shift, widths[w], epsilons[e]};
                fill(&problem, widths[w], 0.5f, 2.0f);
                layer_norm_forward(compute, &layer, ROWS, problem.x,
                                   with_bias ? problem.bias : NULL, problem.y);
                check(&problem, widths[w], with_bias, epsilons[e], 2e-6);
            }
}

static void test_sizes(void **state)
{
    (void)state;
    each_isa(2, sizes);
}

/* A variance as small as the model's own epsilon lets it count, around 0 and far away from it. */
static void small_variance(const struct compute *compute)
{
    static struct problem problem;
    const struct {
        float level, spread;
    } inputs[] = {{0.0f, 1e-3f}, {0.0f, 1e-5f}, {1000.0f, 0.01f}, {-4e6f, 8.0f}};
    for (size_t n = 0; n < sizeof inputs / sizeof inputs[0]; n++)
        for (int64_t width = 4; width <= 384; width *= 3) {
            struct layer_norm layer = {problem.gain, problem.shift, width, 1e-12f};
            fill(&problem, width, inputs[n].level, inputs[n].spread);
            layer_norm_forward(compute, &layer, ROWS, problem.x, NULL, problem.y);
            check(&problem, width, false, 1e-12f, 1e-5);
        }
}

static void test_small_variance(void **state)
{
    (void)state;
    each_isa(1, small_variance);
}

static void equal_numbers(const struct compute *compute)
{
    float x[50], gain[50], shift[50], y[50];
    for (int c = 0; c < 50; c++) {
        x[c] = 0.1f;
        gain[c] = 3.0f;
        shift[c] = (float)c;
    }
    struct layer_norm layer = {gain, shift, 50, 1e-12f};
    layer_norm_forward(compute, &layer, 1, x, NULL, y);
    assert_near(y, shift, 50, 0.05); /* whatever rounding leaves, divided by 1e-6 */
    assert_true(isfinite(y[0]));
}

static void test_equal_numbers(void **state)
{
    (void)state;
    each_isa(1, equal_numbers);
}

/* The output over x and apart: the same bits. */
static void in_place(const struct compute *compute)
{
    static struct problem apart, over_x;
    struct layer_norm layer = {apart.gain, apart.shift, 385, 1e-12f};
    fill(&apart, 385, 0.5f, 2.0f);
    over_x = apart;
    layer_norm_forward(compute, &layer, ROWS, apart.x, apart.bias, apart.y);
    layer_norm_forward(compute, &layer, ROWS, over_x.x, over_x.bias, over_x.x);
    assert_memory_equal(apart.y, over_x.x, ROWS * 385 * sizeof(float));
}

static void test_in_place(void **state)
{
    (void)state;
    each_isa(1, in_place);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    enum { COUNT = 301, WIDTH = 384 };
    float *x = malloc(COUNT * WIDTH * sizeof *x);
    float *one = malloc(COUNT * WIDTH * sizeof *one), *four = malloc(COUNT * WIDTH * sizeof *four);
    static struct problem problem;
    fill(&problem, WIDTH, 0.0f, 1.0f);
    for (int n = 0; n < COUNT * WIDTH; n++)
        x[n] = sinf((float)n);
    struct layer_norm layer = {problem.gain, problem.shift, WIDTH, 1e-12f};
    struct compute single = make_compute(1);
    layer_norm_forward(&single, &layer, COUNT, x, NULL, one);
    compute_destroy(&single);
    struct compute several = make_compute(4);
    layer_norm_forward(&several, &layer, COUNT, x, NULL, four);
    compute_destroy(&several);
    assert_memory_equal(one, four, COUNT * WIDTH * sizeof *one);
    free(x);
    free(one);
    free(four);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_case),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_small_variance), cmocka_unit_test(test_equal_numbers),
        cmocka_unit_test(test_in_place),       cmocka_unit_test(test_threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
