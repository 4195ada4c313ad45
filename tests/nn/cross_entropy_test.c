#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "differences.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/cross_entropy.h"

/* The labels of a case. */
static int64_t case_labels(const json_t *one, int32_t labels[16])
{
    const json_t *list = case_field(one, "input", "labels");
    size_t count = json_array_size(list);
    assert_true(0 < count && count <= 16);
    for (size_t n = 0; n < count; n++)
        labels[n] = (int32_t)json_integer_value(json_array_get(list, n));
    assert_int_equal(json_integer_value(case_field(one, "input", "ignore")), CROSS_ENTROPY_IGNORE);
    return (int64_t)count;
}

/* The sum over no row is 0, and so is the number of rows; no mean is formed. */
static void every_label_ignored(const struct compute *compute)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "every_label_ignored");
    size_t count;
    float *logits = case_numbers(case_field(one, "input", "logits"), &count);
    float *expected = case_numbers(case_field(one, "expected", "dlogits"), NULL);
    int32_t labels[16];
    const int64_t rows = case_labels(one, labels), classes = (int64_t)count / rows;
    struct cross_entropy sum = {0.0, 0};
    struct attn_error error;
    assert_true(cross_entropy_add(compute, rows, classes, logits, classes, labels, 1.0f, logits,
                                  &sum, &error));
    assert_true(sum.loss == json_number_value(case_field(one, "expected", "loss")));
    assert_int_equal(sum.counts, json_integer_value(case_field(one, "expected", "tokens")));
    assert_near(logits, expected, count, 0.0);
    free(logits);
    free(expected);
    json_decref(file);
}

static void test_every_label_ignored(void **state)
{
    (void)state;
    each_isa(2, every_label_ignored);
}

/* Nothing is written where a label is refused, not even for the rows before. */
static void test_labels_out_of_range(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "label_of_minus_four");
    size_t count;
    float *logits = case_numbers(case_field(one, "input", "logits"), &count);
    int32_t labels[16];
    const int64_t rows = case_labels(one, labels), classes = (int64_t)count / rows;
    float gradient[16] = {7.0f, 7.0f};
    struct cross_entropy sum = {0.5, 3};
    struct compute compute = make_compute(1);
    struct attn_error error;
    const struct {
        int32_t label;
        const char *message;
    } wrong[] = {
        {labels[1], "label -4 of row 1 is out of range"},
        {(int32_t)classes, "label 4 of row 1 is out of range: 0 to 3 are classes"},
        {-1, "label -1 of row 1"},
        {-99, "and -100 is a row that does not count"},
        {INT32_MIN, "label -2147483648 of row 1"},
        {INT32_MAX, "label 2147483647 of row 1"},
    };
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        labels[1] = wrong[n].label;
        assert_false(cross_entropy_add(&compute, rows, classes, logits, classes, labels, 1.0f,
                                       gradient, &sum, &error));
        assert_message(&error, wrong[n].message);
        assert_true(sum.loss == 0.5 && sum.counts == 3);
        assert_true(gradient[0] == 7.0f && gradient[1] == 7.0f);
    }
    compute_destroy(&compute);
    free(logits);
    json_decref(file);
}

enum { ROWS = 5, CLASSES = 37, STRIDE = 40 };

static const int32_t some_labels[ROWS] = {0, 36, CROSS_ENTROPY_IGNORE, 17, 5};

static void fill(float *logits, float size)
{
    for (int n = 0; n < ROWS * STRIDE; n++)
        logits[n] = n % STRIDE < CLASSES ? size * sinf((float)n * 0.7f) : NAN;
}

/* The sum of losses of rows a stride apart. */
static double loss_of(const double *logits, const void *user)
{
    const double *scale = user;
    double loss = 0.0;
    for (int r = 0; r < ROWS; r++) {
        const double *row = logits + r * STRIDE;
        double sum = 0.0;
        if (some_labels[r] == CROSS_ENTROPY_IGNORE)
            continue;
        for (int c = 0; c < CLASSES; c++)
            sum += exp(row[c] - row[some_labels[r]]);
        loss += log(sum);
    }
    return *scale * loss;
}

/* Rows a stride apart: what stands between them is not read and stays; added to a sum. */
static void differences(const struct compute *compute)
{
    float logits[ROWS * STRIDE], gradient[ROWS * STRIDE];
    const double scale = 0.25, one = 1.0;
    fill(logits, 3.0f);
    for (int n = 0; n < ROWS * STRIDE; n++)
        gradient[n] = 7.0f;
    struct cross_entropy sum = {10.0, 2};
    struct attn_error error;
    assert_true(cross_entropy_add(compute, ROWS, CLASSES, logits, STRIDE, some_labels, (float)scale,
                                  gradient, &sum, &error));
    double *wide = in_double(logits, ROWS * STRIDE);
    assert_true(fabs(sum.loss - 10.0 - loss_of(wide, &one)) <= 1e-6);
    assert_int_equal(sum.counts, 6);
    for (int r = 0; r < ROWS; r++) {
        for (int c = CLASSES; c < STRIDE; c++)
            assert_true(gradient[r * STRIDE + c] == 7.0f);
        memset(gradient + r * STRIDE + CLASSES, 0, (STRIDE - CLASSES) * sizeof *gradient);
    }
    for (int n = 0; n < ROWS * STRIDE; n++)
        wide[n] = isnan(wide[n]) ? 0.0 : wide[n];
    assert_gradient(gradient, loss_of, wide, ROWS * STRIDE, &scale, 1e-7);

    /* Without a gradient, and with one over the logits. */
    struct cross_entropy alone = {10.0, 2}, over = {10.0, 2};
    assert_true(cross_entropy_add(compute, ROWS, CLASSES, logits, STRIDE, some_labels, 1.0f, NULL,
                                  &alone, &error));
    assert_true(cross_entropy_add(compute, ROWS, CLASSES, logits, STRIDE, some_labels, (float)scale,
                                  logits, &over, &error));
    assert_true(alone.loss == sum.loss && over.loss == sum.loss);
    for (int r = 0; r < ROWS; r++) {
        assert_memory_equal(logits + r * STRIDE, gradient + r * STRIDE, CLASSES * sizeof *logits);
        assert_true(isnan(logits[r * STRIDE + CLASSES]));
    }
    free(wide);
}

static void test_finite_differences(void **state)
{
    (void)state;
    each_isa(2, differences);
}

/* exp(10⁴) is no number, but the loss is. */
static void large_logits(const struct compute *compute)
{
    float logits[ROWS * STRIDE], gradient[ROWS * STRIDE];
    fill(logits, 1e4f);
    struct cross_entropy sum = {0.0, 0};
    struct attn_error error;
    assert_true(cross_entropy_add(compute, ROWS, CLASSES, logits, STRIDE, some_labels, 1.0f,
                                  gradient, &sum, &error));
    double expected = 0.0;
    for (int r = 0; r < ROWS; r++) {
        double largest = 0.0, weights = 0.0;
        for (int c = 0; c < CLASSES; c++) {
            assert_true(isfinite(gradient[r * STRIDE + c]));
            largest = fmax(largest, (double)logits[r * STRIDE + c]);
        }
        if (some_labels[r] == CROSS_ENTROPY_IGNORE)
            continue;
        for (int c = 0; c < CLASSES; c++)
            weights += exp((double)logits[r * STRIDE + c] - largest);
        expected += largest + log(weights) - (double)logits[r * STRIDE + some_labels[r]];
    }
    if (!(fabs(sum.loss - expected) <= 1e-6))
        fail_msg("loss %.12g, expected %.12g", sum.loss, expected);
}

static void test_large_logits(void **state)
{
    (void)state;
    each_isa(1, large_logits);
}

/* NaN, or nothing but −inf: in the loss, and in that row's gradient only. A row that does not count
 * may hold anything. */
static void not_finite(const struct compute *compute)
{
    for (int row = 0; row < ROWS; row++)
        for (int all = 0; all < 2; all++) {
            float logits[ROWS * STRIDE], gradient[ROWS * STRIDE];
            fill(logits, 3.0f);
            for (int c = 0; c < CLASSES; c++)
                if (all)
                    logits[row * STRIDE + c] = -INFINITY;
            if (!all)
                logits[row * STRIDE + 30] = NAN;
            struct cross_entropy sum = {0.0, 0};
            struct attn_error error;
            assert_true(cross_entropy_add(compute, ROWS, CLASSES, logits, STRIDE, some_labels, 1.0f,
                                          gradient, &sum, &error));
            bool ignored = some_labels[row] == CROSS_ENTROPY_IGNORE;
            assert_true(isnan(sum.loss) == !ignored);
            assert_int_equal(sum.counts, 4);
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < CLASSES; c++)
                    assert_true(isnan(gradient[r * STRIDE + c]) == (r == row && !ignored));
        }
}

static void test_not_finite(void **state)
{
    (void)state;
    each_isa(1, not_finite);
}

enum { MANY_ROWS = 131, MANY_CLASSES = 1100 };

static void many_rows(const struct compute *compute, float *result)
{
    int32_t labels[MANY_ROWS];
    for (int r = 0; r < MANY_ROWS; r++)
        labels[r] = r % 5 == 4 ? CROSS_ENTROPY_IGNORE : r * 7;
    for (int n = 0; n < MANY_ROWS * MANY_CLASSES; n++)
        result[n] = 4.0f * sinf((float)n);
    struct cross_entropy sum = {0.0, 0};
    struct attn_error error;
    assert_true(cross_entropy_add(compute, MANY_ROWS, MANY_CLASSES, result, MANY_CLASSES, labels,
                                  0.5f, result, &sum, &error));
    memcpy(result + MANY_ROWS * MANY_CLASSES, &sum.loss, sizeof sum.loss);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count(MANY_ROWS * MANY_CLASSES + 2, many_rows);
}

static void test_no_row(void **state)
{
    (void)state;
    struct cross_entropy sum = {1.5, 2};
    struct compute compute = make_compute(1);
    struct attn_error error;
    float logits = 0.0f;
    assert_true(
        cross_entropy_add(&compute, 0, 1, &logits, 1, some_labels, 1.0f, &logits, &sum, &error));
    assert_true(sum.loss == 1.5 && sum.counts == 2);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_label_ignored),
        cmocka_unit_test(test_labels_out_of_range),
        cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_large_logits),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
