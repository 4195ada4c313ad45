/* Products with stored weights against sums in double of the same weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/context.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "stored_weights.h"

enum { GAP = 3, MOST_PRODUCTS = 3 };

/* Some products of one x, and their y as it was before. */
struct problem {
    int64_t rows, in, x_stride;
    float *x;
    struct weight_matrix weights[MOST_PRODUCTS];
    struct matrix_product products[MOST_PRODUCTS];
    float *before[MOST_PRODUCTS];
    size_t shift;
    int count;
};

static float *make_numbers(int64_t count, double turn)
{
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t n = 0; n < count; n++)
        x[n] = (float)sin((double)n * turn + 1.0);
    return x;
}

static struct problem make_problem(int64_t rows, int64_t in, size_t shift)
{
    struct problem problem = {.rows = rows, .in = in, .x_stride = in + GAP, .shift = shift};
    problem.x = make_numbers(rows * problem.x_stride, 0.7);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = in; c < problem.x_stride; c++)
            problem.x[r * problem.x_stride + c] = NAN;
    return problem;
}

static void add_product(struct problem *problem, enum attn_matrix_type type, int64_t out,
                        bool with_bias, enum matrix_output output)
{
    const int n = problem->count++;
    const int64_t stride = out + GAP, count = problem->rows * stride;
    problem->weights[n] = stored_weights(type, out, problem->in, (uint32_t)n + 1, problem->shift);
    float *y = make_numbers(count, 0.3);
    problem->products[n] = (struct matrix_product){
        .weight = &problem->weights[n],
        .bias = with_bias ? make_numbers(out, 0.9) : NULL,
        .y = y,
        .y_stride = stride,
        .output = output,
    };
    problem->before[n] = malloc((size_t)count * sizeof *y);
    assert_non_null(problem->before[n]);
    for (int64_t i = 0; output == MATRIX_SET && i < count; i++)
        if (i % stride < out)
            y[i] = NAN;
    memcpy(problem->before[n], y, (size_t)count * sizeof *y);
}

static void release_problem(struct problem *problem)
{
    for (int n = 0; n < problem->count; n++) {
        stored_weights_release(&problem->weights[n], problem->shift);
        free((float *)(uintptr_t)problem->products[n].bias);
        free(problem->products[n].y);
        free(problem->before[n]);
    }
    free(problem->x);
}

static void run(const struct compute *compute, attn_precision precision, struct problem *problem)
{
    struct matrix_workspace *workspace;
    struct attn_error error;
    if (!matrix_workspace_create(&workspace, compute, problem->rows, problem->in, &error))
        fail_msg("%s", error.message);
    matrix_products(compute, workspace, precision, problem->rows, problem->x, problem->x_stride,
                    problem->products, problem->count);
    matrix_workspace_destroy(workspace);
}

/* Column o of a product; `weights` is that row of the matrix. */
static void check_column(const struct problem *problem, int n, int64_t o, const float *weights,
                         double tolerance)
{
    const struct matrix_product *product = &problem->products[n];
    for (int64_t r = 0; r < problem->rows; r++) {
        const int64_t place = r * product->y_stride + o;
        double size, expected = stored_product(weights, problem->in,
                                               problem->x + r * problem->x_stride, &size);
        if (product->bias)
            expected += (double)product->bias[o];
        if (product->output == MATRIX_ADD)
            expected += (double)problem->before[n][place];
        if (!(fabs((double)product->y[place] - expected) <= tolerance * (size + 2.0)))
            fail_msg("%s, %d rows of %d: y[%d][%d] = %.9g, expected %.9g",
                     matrix_type_name(product->weight->type), (int)problem->rows, (int)problem->in,
                     (int)r, (int)o, (double)product->y[place], expected);
    }
}

/* Every number within `tolerance` times the size of what was summed; what lies between rows as it
 * was. */
static void check(const struct compute *compute, const struct problem *problem, double tolerance)
{
    float *weights = malloc((size_t)problem->in * sizeof *weights);
    assert_non_null(weights);
    for (int n = 0; n < problem->count; n++) {
        const struct matrix_product *product = &problem->products[n];
        const int64_t out = product->weight->out;
        for (int64_t o = 0; o < out; o++) {
            weight_matrix_row(compute, product->weight, o, weights);
            check_column(problem, n, o, weights, tolerance);
        }
        for (int64_t r = 0; r < problem->rows; r++)
            assert_memory_equal(product->y + r * product->y_stride + out,
                                problem->before[n] + r * product->y_stride + out,
                                GAP * sizeof *weights);
    }
    free(weights);
}

static const double exact_tolerance = 1e-6, rounded_tolerance = 0x1p-8;

static const int64_t row_counts[] = {1, 2, 4, 5, 8, 9, 16, 17, 33};
enum { ROW_COUNTS = sizeof row_counts / sizeof row_counts[0] };

static void check_types(const struct compute *compute, attn_precision precision, double tolerance)
{
    for (int type = 0; type < ATTN_MATRIX_TYPES; type++) {
        const int64_t block = attn_matrix_block((enum attn_matrix_type)type);
        const int64_t in = block == 1 ? 37 : block == 32 ? 96 : 512;
        for (int n = 0; n < ROW_COUNTS; n++) {
            struct problem problem = make_problem(row_counts[n], in, (size_t)n % 3);
            add_product(&problem, (enum attn_matrix_type)type, 29, n % 2, MATRIX_SET);
            add_product(&problem, (enum attn_matrix_type)type, 3, n % 3 == 0, MATRIX_ADD);
            run(compute, precision, &problem);
            check(compute, &problem, tolerance);
            release_problem(&problem);
        }
    }
}

static void exact_types(const struct compute *compute)
{
    check_types(compute, ATTN_PRECISION_EXACT, exact_tolerance);
}

static void rounded_types(const struct compute *compute)
{
    check_types(compute, ATTN_PRECISION_BF16, rounded_tolerance);
}

static void test_every_type(void **state)
{
    (void)state;
    each_isa(1, exact_types);
}

static void test_every_type_rounded_to_bf16(void **state)
{
    (void)state;
    each_isa(1, rounded_types);
}

/* Layers that read the same x, stored in different ways, as files have them; sizes about the edges
 * of blocks and items. */
static void mixed(const struct compute *compute)
{
    static const int64_t outs[] = {1, 47, 95, 96, 97, 193};
    static const int64_t rows[] = {1, 7, 35};
    for (int n = 0; n < 3; n++)
        for (int o = 0; o < 6; o++) {
            struct problem problem = make_problem(rows[n], 256, 0);
            add_product(&problem, ATTN_MATRIX_Q4_1, outs[o], false, MATRIX_SET);
            add_product(&problem, ATTN_MATRIX_Q6_K, outs[5 - o], true, MATRIX_ADD);
            add_product(&problem, ATTN_MATRIX_F32, 5, true, MATRIX_SET);
            run(compute, ATTN_PRECISION_EXACT, &problem);
            check(compute, &problem, exact_tolerance);
            release_problem(&problem);
        }
}

static void test_mixed_types(void **state)
{
    (void)state;
    each_isa(3, mixed);
}

/* Wide enough that a block has fewer rows, and a group fewer panels. */
static void wide(const struct compute *compute)
{
    static const int64_t widths[] = {1, 2, 1707, 3500, 13700, 20000};
    for (int n = 0; n < 6; n++)
        for (attn_precision precision = 0; precision <= ATTN_PRECISION_BF16; precision++) {
            struct problem problem = make_problem(35, widths[n], 1);
            add_product(&problem, ATTN_MATRIX_F16, 30, false, MATRIX_SET);
            run(compute, precision, &problem);
            check(compute, &problem, precision ? rounded_tolerance : 3e-6);
            release_problem(&problem);
        }
}

static void test_wide_rows(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    wide(&compute);
    compute_destroy(&compute);
}

enum { MANY = 71, FEW = 7, IN = 96, OUT = 205 };

static void bits_of_products(const struct compute *compute, float *result)
{
    static const int64_t rows[] = {FEW, MANY};
    for (int n = 0; n < 2; n++)
        for (attn_precision precision = 0; precision <= ATTN_PRECISION_BF16; precision++) {
            struct problem problem = make_problem(rows[n], IN, 0);
            add_product(&problem, ATTN_MATRIX_Q5_1, OUT, true, MATRIX_ADD);
            run(compute, precision, &problem);
            const size_t count = (size_t)(rows[n] * (OUT + GAP));
            memcpy(result, problem.products[0].y, count * sizeof *result);
            result += count;
            release_problem(&problem);
        }
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    each_thread_count((size_t)(2 * (FEW + MANY) * (OUT + GAP)), bits_of_products);
}

/* Rows first.. alone have the bits that they have among all. */
static void check_part(const struct compute *compute, attn_precision precision, int64_t all,
                       int64_t first, int64_t rows)
{
    struct problem whole = make_problem(all, IN, 0), part = make_problem(rows, IN, 0);
    add_product(&whole, ATTN_MATRIX_Q4_0, OUT, false, MATRIX_SET);
    add_product(&part, ATTN_MATRIX_Q4_0, OUT, false, MATRIX_SET);
    memcpy(part.x, whole.x + first * whole.x_stride,
           (size_t)(rows * part.x_stride) * sizeof *part.x);
    run(compute, precision, &whole);
    run(compute, precision, &part);
    for (int64_t r = 0; r < rows; r++)
        assert_memory_equal(part.products[0].y + r * (OUT + GAP),
                            whole.products[0].y + (first + r) * (OUT + GAP), OUT * sizeof(float));
    release_problem(&whole);
    release_problem(&part);
}

static void parts(const struct compute *compute)
{
    for (attn_precision precision = 0; precision <= ATTN_PRECISION_BF16; precision++) {
        check_part(compute, precision, 8, 2, 1);
        check_part(compute, precision, 8, 1, 6);
        check_part(compute, precision, MANY, 0, MANY - 1);
        check_part(compute, precision, MANY, 7, 15);
        check_part(compute, precision, MANY, 30, 40);
    }
}

static void test_a_row_is_its_own(void **state)
{
    (void)state;
    each_isa(1, parts);
}

static void test_no_rows(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct problem problem = make_problem(0, 32, 0);
    add_product(&problem, ATTN_MATRIX_Q4_0, 4, true, MATRIX_SET);
    run(&compute, ATTN_PRECISION_EXACT, &problem);
    release_problem(&problem);
    compute_destroy(&compute);
}

static void test_a_row_of_a_matrix(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct weight_matrix matrix = stored_weights(ATTN_MATRIX_F32, 3, 5, 1, 0);
    float row[5];
    weight_matrix_row(&compute, &matrix, 2, row);
    assert_memory_equal(row, (const float *)matrix.data + 10, sizeof row);
    stored_weights_release(&matrix, 0);
    compute_destroy(&compute);
}

static void test_sizes_that_do_not_fit(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct matrix_workspace *workspace;
    struct attn_error error;
    assert_false(matrix_workspace_create(&workspace, &compute, INT64_MAX / 4, 64, &error));
    assert_null(workspace);
    assert_false(
        matrix_workspace_create(&workspace, &compute, INT64_C(1) << 40, INT64_C(1) << 40, &error));
    matrix_workspace_destroy(NULL);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_every_type_rounded_to_bf16),
        cmocka_unit_test(test_mixed_types),
        cmocka_unit_test(test_wide_rows),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_a_row_is_its_own),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_a_row_of_a_matrix),
        cmocka_unit_test(test_sizes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
