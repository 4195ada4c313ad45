/* dx = dy·W of stored weights against the same sum in double, of weights unpacked row by row. */
#include "nn/matrix_backward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "each_isa.h"
#include "stored_weights.h"

enum { GAP = 3 }; /* behind each row of dy and dx */

struct problem {
    struct weight_matrix weight;
    size_t shift;
    int64_t rows;
    enum gradient_mode mode;
};

static float number(int64_t n)
{
    return sinf((float)n * 0.7f + 0.3f);
}

/* Σ dy·w, in double, and *size = Σ |dy·w|, for all columns of a row of dy. */
static void expect_row(const struct compute *compute, const struct weight_matrix *weight,
                       const float *dy, double *sum, double *size)
{
    float *row = calloc((size_t)weight->in, sizeof *row);
    assert_non_null(row);
    for (int64_t o = 0; o < weight->out; o++) {
        weight_matrix_row(compute, weight, o, row);
        for (int64_t c = 0; c < weight->in; c++) {
            const double product = (double)dy[o] * (double)row[c];
            sum[c] += product;
            size[c] += fabs(product);
        }
    }
    free(row);
}

static void check_row(const struct compute *compute, const struct problem *problem, int64_t r,
                      const float *dy, const float *before, const float *dx)
{
    const int64_t in = problem->weight.in;
    double *sum = calloc((size_t)in, 2 * sizeof *sum);
    assert_non_null(sum);
    double *size = sum + in;
    expect_row(compute, &problem->weight, dy, sum, size);
    for (int64_t c = 0; c < in; c++) {
        const double expected = sum[c] + (problem->mode == GRADIENT_ADD ? (double)before[c] : 0.0);
        const double tolerance = 2e-6 * (size[c] + fabs(expected));
        if (!(fabs((double)dx[c] - expected) <= tolerance))
            fail_msg("%s [%d][%d], row %d, column %d: %.9g, expected %.9g",
                     matrix_type_name(problem->weight.type), (int)problem->weight.out, (int)in,
                     (int)r, (int)c, (double)dx[c], expected);
    }
    assert_memory_equal(dx + in, before + in, GAP * sizeof *dx);
    free(sum);
}

/* dx holds NaN before where it is written, and between its rows. */
static void check(const struct compute *compute, const struct problem *problem)
{
    const int64_t in = problem->weight.in, out = problem->weight.out, rows = problem->rows;
    const int64_t dy_stride = out + GAP, dx_stride = in + GAP;
    const size_t numbers = (size_t)(rows * dx_stride + 1);
    float *dy = calloc((size_t)(rows * dy_stride + 1), sizeof *dy);
    float *dx = calloc(numbers, sizeof *dx), *before = calloc(numbers, sizeof *before);
    float *workspace = calloc((size_t)matrix_backward_workspace(in), sizeof *workspace);
    assert_true(dy && dx && before && workspace);
    for (int64_t n = 0; n < rows * dy_stride; n++)
        dy[n] = n % dy_stride < out ? number(n) : NAN;
    for (int64_t n = 0; n < rows * dx_stride; n++)
        before[n] = n % dx_stride < in && problem->mode == GRADIENT_ADD ? number(n + 5) : NAN;
    memcpy(dx, before, numbers * sizeof *dx);
    matrix_backward(compute, &problem->weight, rows, dy, dy_stride, dx, dx_stride, problem->mode,
                    workspace);
    for (int64_t r = 0; r < rows; r++)
        check_row(compute, problem, r, dy + r * dy_stride, before + r * dx_stride,
                  dx + r * dx_stride);
    free(workspace);
    free(before);
    free(dx);
    free(dy);
}

static void check_type(const struct compute *compute, enum attn_matrix_type type, int64_t out,
                       int64_t in, size_t shift)
{
    static const int64_t rows[] = {0, 1, 7};
    struct problem problem = {.weight = stored_weights(type, out, in, 3, shift), .shift = shift};
    for (int n = 0; n < 3; n++)
        for (int mode = GRADIENT_SET; mode <= GRADIENT_ADD; mode++) {
            problem.rows = rows[n];
            problem.mode = (enum gradient_mode)mode;
            check(compute, &problem);
        }
    stored_weights_release(&problem.weight, shift);
}

/* In place where they are aligned f32, else unpacked. */
static void every_type(const struct compute *compute)
{
    for (enum attn_matrix_type type = 0; type < ATTN_MATRIX_TYPES; type++)
        for (size_t shift = 0; shift < 2; shift++) {
            const int64_t block = attn_matrix_block(type);
            check_type(compute, type, 1, block, shift);
            check_type(compute, type, 37, block == 1 ? 29 : block, shift);
            check_type(compute, type, 20, block == 1 ? 65 : 2 * block, shift);
        }
}

static void test_every_type(void **state)
{
    (void)state;
    each_isa(2, every_type);
}

/* More rows of weights than are unpacked at once, and rows that are wider than that. */
static void test_several_blocks(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    check_type(&compute, ATTN_MATRIX_Q8_0, 5000, 512, 0);
    check_type(&compute, ATTN_MATRIX_F16, 40, 70001, 0);
    compute_destroy(&compute);
}

static void test_threads(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct compute compute = make_compute(threads);
        check_type(&compute, ATTN_MATRIX_Q4_1, 300, 96, 0);
        compute_destroy(&compute);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_several_blocks),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
