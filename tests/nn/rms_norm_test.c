#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/rms_norm.h"

static void handed_case(const struct compute *compute)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "rms_norm_of_two_rows");
    size_t count, width;
    float *gain = case_numbers(case_field(one, "input", "gain"), &width);
    float *x = case_numbers(case_field(one, "input", "x"), &count);
    float *y = case_numbers(case_field(one, "expected", "y"), NULL);
    const struct rms_norm layer = {gain, (int64_t)width,
                                   (float)json_number_value(case_field(one, "input", "eps"))};
    rms_norm_forward(compute, &layer, (int64_t)(count / width), x, x);
    assert_near(x, y, count, json_number_value(case_field(one, "tolerance", NULL)));
    free(gain);
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

static void check_width(const struct compute *compute, int64_t width, float spread, float epsilon)
{
    static float x[ROWS * LARGEST], y[ROWS * LARGEST], gain[LARGEST];
    for (int64_t n = 0; n < ROWS * width; n++)
        x[n] = spread * (0.5f + sinf((float)n * 0.7f));
    for (int64_t c = 0; c < width; c++)
        gain[c] = 1.0f + 0.5f * cosf((float)c);
    const struct rms_norm layer = {gain, width, epsilon};
    rms_norm_forward(compute, &layer, ROWS, x, y);
    for (int64_t i = 0; i < ROWS; i++) {
        double square = 0.0;
        for (int64_t c = 0; c < width; c++)
            square += (double)x[i * width + c] * (double)x[i * width + c];
        double root = sqrt(square / (double)width + (double)epsilon);
        for (int64_t c = 0; c < width; c++) {
            double expected = (double)x[i * width + c] / root * (double)gain[c];
            if (!(fabs((double)y[i * width + c] - expected) <= 5e-7 * fabs(expected)))
                fail_msg("width %d, row %d, column %d: %.9g, expected %.9g", (int)width, (int)i,
                         (int)c, (double)y[i * width + c], expected);
        }
    }
}

static void sizes(const struct compute *compute)
{
    const int64_t widths[] = {1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 384, 385, LARGEST};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        check_width(compute, widths[w], 2.0f, 1e-5f);
        check_width(compute, widths[w], 1e-3f, 1e-6f);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    each_isa(2, sizes);
}

enum { MANY_ROWS = 301, WIDTH = 384 };

static void normalise_many(const struct compute *compute, float *y)
{
    float *x = malloc(MANY_ROWS * WIDTH * sizeof *x), gain[WIDTH];
    assert_non_null(x);
    for (int n = 0; n < MANY_ROWS * WIDTH; n++)
        x[n] = sinf((float)n);
    for (int c = 0; c < WIDTH; c++)
        gain[c] = cosf((float)c);
    const struct rms_norm layer = {gain, WIDTH, 1e-6f};
    rms_norm_forward(compute, &layer, MANY_ROWS, x, y);
    free(x);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count(MANY_ROWS * WIDTH, normalise_many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_case),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
