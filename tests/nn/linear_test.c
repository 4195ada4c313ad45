#include "cmocka_test.h"

#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "nn/linear.h"

/* Weights are [out][in]: a square matrix taken the wrong way round would give {1, 3}. */
static void test_square_matrix_is_out_by_in(void **state)
{
    (void)state;
    const float weight[] = {1, 2, 3, 4}, x[] = {1, 0};
    float y[2];
    const struct linear layer = {.weight = weight, .in = 2, .out = 2};
    linear_product(&layer, 1, x, 2, y, 2);
    assert_near(y, (const float[]){1, 3}, 2, 0.0);
}

enum { GAP = 5 };

/* x and y in wider matrices, whose other columns are NaN and must stay what they are. */
static void check_size(int64_t rows, int64_t in, int64_t out, bool with_bias)
{
    const int64_t x_stride = in + GAP, y_stride = out + GAP;
    float *weight = malloc((size_t)(in * out) * sizeof *weight);
    float *bias = malloc((size_t)out * sizeof *bias);
    float *x = malloc((size_t)(rows * x_stride) * sizeof *x);
    float *y = malloc((size_t)(rows * y_stride) * sizeof *y);
    assert_true(weight && bias && x && y);
    for (int64_t n = 0; n < in * out; n++)
        weight[n] = sinf((float)n * 0.37f);
    for (int64_t n = 0; n < out; n++)
        bias[n] = 10.0f + (float)n;
    for (int64_t n = 0; n < rows * x_stride; n++)
        x[n] = n % x_stride < in ? cosf((float)n * 0.61f) : NAN;
    for (int64_t n = 0; n < rows * y_stride; n++)
        y[n] = NAN;

    const struct linear layer = {weight, with_bias ? bias : NULL, in, out};
    linear_forward(&layer, rows, x, x_stride, y, y_stride);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t o = 0; o < out; o++) {
            double sum = with_bias ? (double)bias[o] : 0.0;
            for (int64_t c = 0; c < in; c++)
                sum += (double)x[i * x_stride + c] * (double)weight[o * in + c];
            if (!(fabs((double)y[i * y_stride + o] - sum) <= 1e-5 * (double)(in + 10)))
                fail_msg("row %d, column %d: %.9g, expected %.9g", (int)i, (int)o,
                         (double)y[i * y_stride + o], sum);
        }
        for (int64_t o = out; o < y_stride; o++)
            assert_true(isnan(y[i * y_stride + o]));
    }
    free(weight);
    free(bias);
    free(x);
    free(y);
}

static void test_sizes_and_strides(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {{1, 1, 1}, {1, 384, 7}, {3, 5, 9}, {17, 64, 33}, {70, 31, 130}};
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++)
        for (int bias = 0; bias < 2; bias++)
            check_size(sizes[n][0], sizes[n][1], sizes[n][2], bias);
}

/* y + x·weightᵀ, whatever stood in y; the bias is left to the pass that follows. */
static void test_accumulate_adds_to_what_is_there(void **state)
{
    (void)state;
    const float weight[] = {1, 2, 3, 4, 5, 6}, bias[] = {100, 200, 300};
    const float x[] = {1, 10, NAN, 2, 20, NAN};
    float y[] = {1, 2, 3, NAN, 4, 5, 6, NAN};
    const struct linear layer = {weight, bias, 2, 3};
    linear_accumulate(&layer, 2, x, 3, y, 4);
    assert_near(y, (const float[]){22, 45, 68}, 3, 0.0);
    assert_near(y + 4, (const float[]){46, 91, 136}, 3, 0.0);
    assert_true(isnan(y[3]) && isnan(y[7]));
}

static void test_no_row(void **state)
{
    (void)state;
    const float weight[] = {1, 2}, bias[] = {1};
    float y = 7.0f;
    const struct linear layer = {weight, bias, 2, 1};
    linear_forward(&layer, 0, &y, 2, &y, 1);
    assert_true(y == 7.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_square_matrix_is_out_by_in),
        cmocka_unit_test(test_sizes_and_strides),
        cmocka_unit_test(test_accumulate_adds_to_what_is_there),
        cmocka_unit_test(test_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
