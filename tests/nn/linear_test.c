#include "cmocka_test.h"

#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "each_isa.h"
#include "nn/linear.h"

/* [in][out], as GPT-2 keeps it: nothing but the layout tells which way round a square one lies. */
static void test_square_matrix_is_in_by_out(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "square_matrix_stored_in_out");
    float *weight = case_numbers(case_field(one, "input", "weight_in_out"), NULL);
    float *x = case_numbers(case_field(one, "input", "x"), NULL);
    float *expected = case_numbers(case_field(one, "expected", "y"), NULL), y[2];
    const struct linear layer = {.weight = weight, .in = 2, .out = 2, .layout = LINEAR_IN_OUT};
    linear_product(&layer, 1, x, 2, y, 2);
    assert_near(y, expected, 2, 0.0);
    free(weight);
    free(x);
    free(expected);
    json_decref(file);
}

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

/* A layer with weights of its own. Where the weight's rows have a stride, NaN stands between them.
 */
static struct linear make_layer(int64_t in, int64_t out, enum linear_layout layout, bool with_bias,
                                bool with_stride)
{
    const int64_t lines = layout == LINEAR_OUT_IN ? out : in;
    const int64_t width = layout == LINEAR_OUT_IN ? in : out;
    const int64_t stride = width + (with_stride ? GAP : 0);
    float *weight = malloc((size_t)(lines * stride + out) * sizeof *weight);
    assert_non_null(weight);
    for (int64_t n = 0; n < lines * stride; n++)
        weight[n] = n % stride < width ? sinf((float)n * 0.37f) : NAN;
    float *bias = weight + lines * stride;
    for (int64_t n = 0; n < out; n++)
        bias[n] = 10.0f + (float)n;
    return (struct linear){weight, with_bias ? bias : NULL, in, out,
                           layout, with_stride ? stride : 0};
}

static void free_layer(const struct linear *layer)
{
    free((float *)(uintptr_t)layer->weight);
}

/* Where weight [o][c] of a layer stands. */
static int64_t place_of(const struct linear *layer, int64_t o, int64_t c)
{
    if (layer->layout == LINEAR_OUT_IN)
        return o * (layer->weight_stride ? layer->weight_stride : layer->in) + c;
    return c * (layer->weight_stride ? layer->weight_stride : layer->out) + o;
}

static int64_t weight_size(const struct linear *layer)
{
    return place_of(layer, layer->out - 1, layer->in - 1) + 1;
}

/* [rows][width], a stride of width + GAP apart, NaN between. */
static float *make_rows(int64_t rows, int64_t width, float turn)
{
    const int64_t stride = width + GAP;
    float *x = malloc((size_t)(rows * stride + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t n = 0; n < rows * stride; n++)
        x[n] = n % stride < width ? cosf((float)n * turn) : NAN;
    return x;
}

static void assert_gaps(const float *x, int64_t rows, int64_t width)
{
    for (int64_t n = 0; n < rows * (width + GAP); n++)
        assert_true(n % (width + GAP) < width || isnan(x[n]));
}

static void assert_close(float actual, double expected, double tolerance, const char *what)
{
    if (!(fabs((double)actual - expected) <= tolerance))
        fail_msg("%s is %.9g, expected %.9g within %g", what, (double)actual, expected, tolerance);
}

/* x and y in wider matrices, whose other columns are NaN and must stay what they are. */
static void check_forward(const struct linear *layer, int64_t rows)
{
    const int64_t x_stride = layer->in + GAP, y_stride = layer->out + GAP;
    float *x = make_rows(rows, layer->in, 0.61f), *y = make_rows(rows, layer->out, 0.1f);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < layer->out; o++)
            y[i * y_stride + o] = NAN;
    linear_forward(layer, rows, x, x_stride, y, y_stride);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < layer->out; o++) {
            double sum = layer->bias ? (double)layer->bias[o] : 0.0;
            for (int64_t c = 0; c < layer->in; c++)
                sum += (double)x[i * x_stride + c] * (double)layer->weight[place_of(layer, o, c)];
            assert_close(y[i * y_stride + o], sum, 1e-5 * (double)(layer->in + 10), "y");
        }
    assert_gaps(y, rows, layer->out);
    free(x);
    free(y);
}

/* Gradients of a layer as it writes them, or as it adds them to `before` in every place. */
struct gradients {
    float *dx, *weight, *bias;
    float before;
};

static void check_gradients(const struct linear *layer, int64_t rows, const float *x,
                            const float *dy, const struct gradients *gradients)
{
    const int64_t x_stride = layer->in + GAP, dy_stride = layer->out + GAP;
    const double before = (double)gradients->before;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < layer->in; c++) {
            double sum = before;
            for (int64_t o = 0; o < layer->out; o++)
                sum += (double)dy[i * dy_stride + o] * (double)layer->weight[place_of(layer, o, c)];
            assert_close(gradients->dx[i * x_stride + c], sum, 1e-6 * (double)(layer->out + 10),
                         "dx");
        }
    for (int64_t o = 0; o < layer->out; o++) {
        double sum = before;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)dy[i * dy_stride + o];
        assert_close(gradients->bias[o], sum, 1e-7 * (double)(rows + 10), "db");
        for (int64_t c = 0; c < layer->in; c++) {
            double product = before;
            for (int64_t i = 0; i < rows; i++)
                product += (double)dy[i * dy_stride + o] * (double)x[i * x_stride + c];
            assert_close(gradients->weight[place_of(layer, o, c)], product,
                         1e-6 * (double)(rows + 10), "dW");
        }
    }
}

/* What stands between the rows of a part of a matrix belongs to another part. */
static void assert_weight_gaps(const struct linear *layer, const float *weight)
{
    const int64_t width = layer->layout == LINEAR_OUT_IN ? layer->in : layer->out;
    for (int64_t n = 0; n < weight_size(layer); n++)
        assert_true(!layer->weight_stride || n % layer->weight_stride < width || isnan(weight[n]));
}

static void check_backward(const struct linear *layer, int64_t rows)
{
    const int64_t x_stride = layer->in + GAP, dy_stride = layer->out + GAP;
    float *x = make_rows(rows, layer->in, 0.61f), *dy = make_rows(rows, layer->out, 0.23f);
    for (int mode = GRADIENT_SET; mode <= GRADIENT_ADD; mode++) {
        struct gradients gradients = {
            make_rows(rows, layer->in, 0.0f), malloc((size_t)weight_size(layer) * sizeof(float)),
            malloc((size_t)layer->out * sizeof(float)), mode == GRADIENT_SET ? 0.0f : 1.0f};
        assert_true(gradients.weight && gradients.bias);
        const float before = mode == GRADIENT_SET ? NAN : 1.0f;
        for (int64_t n = 0; n < weight_size(layer); n++)
            gradients.weight[n] = NAN;
        for (int64_t o = 0; o < layer->out; o++) {
            gradients.bias[o] = before;
            for (int64_t c = 0; c < layer->in; c++)
                gradients.weight[place_of(layer, o, c)] = before;
        }
        for (int64_t n = 0; n < rows * x_stride; n++)
            gradients.dx[n] = n % x_stride < layer->in ? before : NAN;

        const struct linear_gradient gradient = {gradients.weight, gradients.bias,
                                                 (enum gradient_mode)mode};
        linear_backward(layer, rows, x, x_stride, dy, dy_stride, gradients.dx, x_stride,
                        (enum gradient_mode)mode, &gradient);
        check_gradients(layer, rows, x, dy, &gradients);
        assert_gaps(gradients.dx, rows, layer->in);
        assert_weight_gaps(layer, gradients.weight);
        free(gradients.dx);
        free(gradients.weight);
        free(gradients.bias);
    }
    free(x);
    free(dy);
}

static void each_layer(void (*check)(const struct linear *layer, int64_t rows))
{
    const int64_t sizes[][3] = {{1, 1, 1},     {1, 384, 7},   {3, 5, 9},    {17, 64, 33},
                                {70, 31, 130}, {129, 3, 600}, {300, 13, 11}};
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++)
        for (int choice = 0; choice < 8; choice++) {
            const struct linear layer =
                make_layer(sizes[n][1], sizes[n][2], choice & 1 ? LINEAR_IN_OUT : LINEAR_OUT_IN,
                           choice & 2, choice & 4);
            check(&layer, sizes[n][0]);
            free_layer(&layer);
        }
}

static void test_sizes_and_strides(void **state)
{
    (void)state;
    each_layer(check_forward);
}

static void test_backward(void **state)
{
    (void)state;
    each_layer(check_backward);
}

/* Only what is wanted is touched. */
static void test_gradients_not_wanted(void **state)
{
    (void)state;
    const struct linear layer = make_layer(5, 9, LINEAR_OUT_IN, true, false);
    float *x = make_rows(3, 5, 0.61f), *dy = make_rows(3, 9, 0.23f), *dx = make_rows(3, 5, 0.0f);
    float bias[9];
    struct linear_gradient gradient = {NULL, bias, GRADIENT_SET};
    linear_backward(&layer, 3, NULL, 0, dy, 9 + GAP, NULL, 0, GRADIENT_SET, &gradient);
    for (int o = 0; o < 9; o++)
        assert_close(bias[o],
                     (double)dy[o] + (double)dy[9 + GAP + o] + (double)dy[2 * (9 + GAP) + o], 1e-6,
                     "db");
    gradient.bias = NULL;
    linear_backward(&layer, 3, NULL, 0, dy, 9 + GAP, dx, 5 + GAP, GRADIENT_SET, &gradient);
    assert_true(dx[0] != 1.0f);
    free_layer(&layer);
    free(x);
    free(dy);
    free(dx);
}

static void test_backward_of_no_row(void **state)
{
    (void)state;
    for (int layout = LINEAR_OUT_IN; layout <= LINEAR_IN_OUT; layout++) {
        const float weights[6] = {1, 2, 3, 4, 5, 6};
        const struct linear layer = {weights, NULL, 2, 3, (enum linear_layout)layout, 0};
        float weight[6] = {7, 7, 7, 7, 7, 7}, bias[3] = {7, 7, 7};
        struct linear_gradient gradient = {weight, bias, GRADIENT_ADD};
        linear_backward(&layer, 0, weights, 2, weights, 3, NULL, 0, GRADIENT_SET, &gradient);
        for (int n = 0; n < 6; n++)
            assert_true(weight[n] == 7.0f && bias[n / 2] == 7.0f);
        gradient.mode = GRADIENT_SET;
        linear_backward(&layer, 0, weights, 2, weights, 3, NULL, 0, GRADIENT_SET, &gradient);
        for (int n = 0; n < 6; n++)
            assert_true(weight[n] == 0.0f && bias[n / 2] == 0.0f);
    }
}

/* Float sums of so many rows would lose what a sum of sums keeps. */
static void test_bias_of_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    float *dy = malloc(ROWS * sizeof *dy), bias = NAN;
    assert_non_null(dy);
    double sum = 0.0;
    for (int i = 0; i < ROWS; i++) {
        dy[i] = 0.1f; /* rounds to the same side again and again */
        sum += (double)dy[i];
    }
    const struct linear layer = {NULL, NULL, 1, 1, LINEAR_OUT_IN, 0};
    const struct linear_gradient gradient = {NULL, &bias, GRADIENT_SET};
    linear_backward(&layer, ROWS, NULL, 1, dy, 1, NULL, 1, GRADIENT_SET, &gradient);
    assert_close(bias, sum, 1e-5 * sum, "db");
    free(dy);
}

enum {
    MANY_ROWS = 301,
    IN = 130,
    OUT = 260,
    NUMBERS = MANY_ROWS * (IN + OUT) + (IN + 1) * OUT /* of y, dx, dW and db */
};

/* db last. */
static void all_of_a_layer(enum linear_layout layout, float result[NUMBERS])
{
    const struct linear layer = make_layer(IN, OUT, layout, true, false);
    float *x = make_rows(MANY_ROWS, IN, 0.61f), *dy = make_rows(MANY_ROWS, OUT, 0.23f);
    float *dx = result + MANY_ROWS * OUT, *weight = dx + MANY_ROWS * IN;
    const struct linear_gradient gradient = {weight, weight + IN * OUT, GRADIENT_SET};
    linear_forward(&layer, MANY_ROWS, x, IN + GAP, result, OUT);
    linear_backward(&layer, MANY_ROWS, x, IN + GAP, dy, OUT + GAP, dx, IN, GRADIENT_SET, &gradient);
    free_layer(&layer);
    free(x);
    free(dy);
}

/* db to the bit, the products of CBLAS to rounding; with as many threads to the bit too. */
static void test_threads(void **state)
{
    (void)state;
    static float first[NUMBERS], result[NUMBERS], again[NUMBERS];
    for (int layout = LINEAR_OUT_IN; layout <= LINEAR_IN_OUT; layout++)
        for (int threads = 1; threads <= 4; threads++) {
            struct compute compute = make_compute(threads);
            all_of_a_layer((enum linear_layout)layout, threads == 1 ? first : result);
            all_of_a_layer((enum linear_layout)layout, again);
            compute_destroy(&compute);
            const float *now = threads == 1 ? first : result;
            assert_memory_equal(again, now, sizeof again);
            assert_near(now, first, NUMBERS, 1e-4);
            assert_memory_equal(now + NUMBERS - OUT, first + NUMBERS - OUT, OUT * sizeof *now);
        }
}

/* y + x·weightᵀ, whatever stood in y; the bias is left to the pass that follows. */
static void test_accumulate_adds_to_what_is_there(void **state)
{
    (void)state;
    const float weight[] = {1, 2, 3, 4, 5, 6}, bias[] = {100, 200, 300};
    const float x[] = {1, 10, NAN, 2, 20, NAN};
    float y[] = {1, 2, 3, NAN, 4, 5, 6, NAN};
    const struct linear layer = {.weight = weight, .bias = bias, .in = 2, .out = 3};
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
    const struct linear layer = {.weight = weight, .bias = bias, .in = 2, .out = 1};
    linear_forward(&layer, 0, &y, 2, &y, 1);
    assert_true(y == 7.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_square_matrix_is_in_by_out),
        cmocka_unit_test(test_square_matrix_is_out_by_in),
        cmocka_unit_test(test_sizes_and_strides),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_gradients_not_wanted),
        cmocka_unit_test(test_backward_of_no_row),
        cmocka_unit_test(test_bias_of_many_rows),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_accumulate_adds_to_what_is_there),
        cmocka_unit_test(test_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
