/* The backward passes of layer norm and RMS norm, which share everything but a mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "differences.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/layer_norm.h"
#include "nn/rms_norm.h"

enum norm { LAYER_NORM, RMS_NORM, NORMS };

/* A problem and the places for its gradients; d_shift stays as it is for an RMS norm. */
struct problem {
    enum norm norm;
    int64_t rows, width;
    float epsilon;
    float *x, *dy, *gain, *shift;
    float *dx, *d_gain, *d_shift;
};

static bool run(const struct compute *compute, const struct problem *problem,
                enum gradient_mode dx_mode, enum gradient_mode mode, struct attn_error *error)
{
    if (problem->norm == RMS_NORM) {
        const struct rms_norm layer = {problem->gain, problem->width, problem->epsilon};
        const struct rms_norm_gradient gradient = {problem->d_gain, mode};
        return rms_norm_backward(compute, &layer, problem->rows, problem->x, problem->dy,
                                 problem->dx, dx_mode, &gradient, error);
    }
    const struct layer_norm layer = {problem->gain, problem->shift, problem->width,
                                     problem->epsilon};
    const struct layer_norm_gradient gradient = {problem->d_gain, problem->d_shift, mode};
    return layer_norm_backward(compute, &layer, problem->rows, problem->x, problem->dy, problem->dx,
                               dx_mode, &gradient, error);
}

static void run_well(const struct compute *compute, const struct problem *problem,
                     enum gradient_mode dx_mode, enum gradient_mode mode)
{
    struct attn_error error;
    if (!run(compute, problem, dx_mode, mode, &error))
        fail_msg("%s", error.message);
}

/* Gradients are NaN until they are written. */
static struct problem make_problem(enum norm norm, int64_t rows, int64_t width)
{
    const int64_t count = rows * width;
    struct problem problem = {.norm = norm, .rows = rows, .width = width, .epsilon = 1e-5f};
    problem.x = malloc((size_t)(3 * count + 4 * width + 1) * sizeof *problem.x);
    assert_non_null(problem.x);
    problem.dy = problem.x + count;
    problem.dx = problem.dy + count;
    problem.gain = problem.dx + count;
    problem.shift = problem.gain + width;
    problem.d_gain = problem.shift + width;
    problem.d_shift = problem.d_gain + width;
    for (int64_t n = 0; n < count; n++) {
        problem.x[n] = 0.5f + sinf((float)n * 0.7f);
        problem.dy[n] = cosf((float)n * 1.3f);
        problem.dx[n] = NAN;
    }
    for (int64_t c = 0; c < width; c++) {
        problem.gain[c] = 1.0f + 0.5f * cosf((float)c);
        problem.shift[c] = 0.25f * sinf((float)c * 2.0f);
        problem.d_gain[c] = problem.d_shift[c] = NAN;
    }
    return problem;
}

static void free_problem(struct problem *problem)
{
    free(problem->x);
}

static void check_case(const struct compute *compute, enum norm norm, const char *name)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, name);
    size_t count, width;
    struct problem problem = {.norm = norm, .shift = NULL};
    problem.x = case_numbers(case_field(one, "input", "x"), &count);
    problem.dy = case_numbers(case_field(one, "input", "dy"), NULL);
    problem.gain = case_numbers(case_field(one, "input", "gain"), &width);
    problem.width = (int64_t)width;
    problem.rows = (int64_t)(count / width);
    problem.epsilon = (float)json_number_value(case_field(one, "input", "eps"));
    float *dx = case_numbers(case_field(one, "expected", "dx"), NULL);
    float *d_gain = case_numbers(case_field(one, "expected", "dgain"), NULL);
    double tolerance = json_number_value(case_field(one, "tolerance", NULL));

    float results[3][16];
    assert_true(count <= 16);
    for (int n = 0; n < 16; n++)
        results[0][n] = results[1][n] = results[2][n] = NAN;
    problem.dx = results[0];
    problem.d_gain = results[1];
    problem.d_shift = results[2];
    run_well(compute, &problem, GRADIENT_SET, GRADIENT_SET);
    assert_near(problem.dx, dx, count, tolerance);
    assert_near(problem.d_gain, d_gain, width, tolerance);
    if (norm == LAYER_NORM) {
        float *d_shift = case_numbers(case_field(one, "expected", "dbias"), NULL);
        assert_near(problem.d_shift, d_shift, width, tolerance);
        free(d_shift);
    }
    free(problem.x);
    free(problem.dy);
    free(problem.gain);
    free(dx);
    free(d_gain);
    json_decref(file);
}

static void handed_cases(const struct compute *compute)
{
    check_case(compute, LAYER_NORM, "layer_norm_backward_of_two_rows");
    check_case(compute, RMS_NORM, "rms_norm_backward_of_two_rows");
}

static void test_handed_cases(void **state)
{
    (void)state;
    each_isa(1, handed_cases);
}

/* Σ dy·y in double of x, gain and shift, one behind the other. */
static double weighted_output(const double *numbers, const void *user)
{
    const struct problem *problem = user;
    const int64_t width = problem->width;
    const double *gain = numbers + problem->rows * width, *shift = gain + width;
    double sum = 0.0;
    for (int64_t i = 0; i < problem->rows; i++) {
        const double *x = numbers + i * width;
        double mean = 0.0, square = 0.0;
        for (int64_t c = 0; c < width; c++)
            mean += problem->norm == LAYER_NORM ? x[c] / (double)width : 0.0;
        for (int64_t c = 0; c < width; c++)
            square += (x[c] - mean) * (x[c] - mean) / (double)width;
        double r = 1.0 / sqrt(square + (double)problem->epsilon);
        for (int64_t c = 0; c < width; c++) {
            double y = (x[c] - mean) * r * gain[c] + (problem->norm == LAYER_NORM ? shift[c] : 0.0);
            sum += (double)problem->dy[i * width + c] * y;
        }
    }
    return sum;
}

static void check_differences(const struct compute *compute, enum norm norm, int64_t rows,
                              int64_t width)
{
    struct problem problem = make_problem(norm, rows, width);
    const int64_t count = rows * width;
    run_well(compute, &problem, GRADIENT_SET, GRADIENT_SET);
    double *numbers = malloc((size_t)(count + 2 * width) * sizeof *numbers);
    float *gradient = malloc((size_t)(count + 2 * width) * sizeof *gradient);
    assert_true(numbers && gradient);
    for (int64_t n = 0; n < count; n++) {
        numbers[n] = (double)problem.x[n];
        gradient[n] = problem.dx[n];
    }
    for (int64_t c = 0; c < width; c++) {
        numbers[count + c] = (double)problem.gain[c];
        numbers[count + width + c] = (double)problem.shift[c];
        gradient[count + c] = problem.d_gain[c];
        gradient[count + width + c] = norm == LAYER_NORM ? problem.d_shift[c] : 0.0f;
    }
    assert_gradient(gradient, weighted_output, numbers, (size_t)(count + 2 * width), &problem,
                    3e-6);
    free(numbers);
    free(gradient);
    free_problem(&problem);
}

static void differences(const struct compute *compute)
{
    for (int norm = 0; norm < NORMS; norm++) {
        check_differences(compute, (enum norm)norm, 1, 3);
        check_differences(compute, (enum norm)norm, 3, 8);
        check_differences(compute, (enum norm)norm, 19, 17);
        check_differences(compute, (enum norm)norm, 2, 70);
    }
}

static void test_finite_differences(void **state)
{
    (void)state;
    each_isa(2, differences);
}

/* Twice with ADD is what SET writes, and once more; dx may be dy where it is written. */
static void modes(const struct compute *compute)
{
    for (int norm = 0; norm < NORMS; norm++) {
        enum { ROWS = 70, WIDTH = 37 };
        struct problem set = make_problem((enum norm)norm, ROWS, WIDTH);
        struct problem add = make_problem((enum norm)norm, ROWS, WIDTH);
        run_well(compute, &set, GRADIENT_SET, GRADIENT_SET);
        run_well(compute, &add, GRADIENT_SET, GRADIENT_SET);
        run_well(compute, &add, GRADIENT_ADD, GRADIENT_ADD);
        for (int n = 0; n < ROWS * WIDTH; n++)
            add.dx[n] *= 0.5f;
        for (int c = 0; c < WIDTH; c++) {
            add.d_gain[c] *= 0.5f;
            add.d_shift[c] *= 0.5f;
        }
        assert_memory_equal(add.dx, set.dx, ROWS * WIDTH * sizeof *set.dx);
        assert_memory_equal(add.d_gain, set.d_gain, WIDTH * sizeof *set.d_gain);
        if (norm == LAYER_NORM)
            assert_memory_equal(add.d_shift, set.d_shift, WIDTH * sizeof *set.d_shift);

        add.dx = add.dy;
        add.d_gain = add.d_shift = NULL; /* not wanted */
        run_well(compute, &add, GRADIENT_SET, GRADIENT_SET);
        assert_memory_equal(add.dy, set.dx, ROWS * WIDTH * sizeof *set.dx);
        free_problem(&set);
        free_problem(&add);
    }
}

static void test_modes(void **state)
{
    (void)state;
    each_isa(2, modes);
}

static void test_no_row(void **state)
{
    (void)state;
    const float zeros[5] = {0}, ones[5] = {1, 1, 1, 1, 1};
    struct compute compute = make_compute(1);
    for (int norm = 0; norm < NORMS; norm++) {
        struct problem problem = make_problem((enum norm)norm, 0, 5);
        memcpy(problem.d_gain, ones, sizeof ones);
        run_well(&compute, &problem, GRADIENT_SET, GRADIENT_ADD);
        assert_memory_equal(problem.d_gain, ones, sizeof ones);
        run_well(&compute, &problem, GRADIENT_SET, GRADIENT_SET);
        assert_memory_equal(problem.d_gain, zeros, sizeof zeros);
        free_problem(&problem);
    }
    compute_destroy(&compute);
}

enum { MANY_ROWS = 301, MANY_COLUMNS = 130 };

/* dx of both norms, then what they sum over rows. */
static void many_rows(const struct compute *compute, float *result)
{
    for (int norm = 0; norm < NORMS; norm++) {
        struct problem problem = make_problem((enum norm)norm, MANY_ROWS, MANY_COLUMNS);
        run_well(compute, &problem, GRADIENT_SET, GRADIENT_SET);
        memcpy(result, problem.dx, MANY_ROWS * MANY_COLUMNS * sizeof *result);
        result += MANY_ROWS * MANY_COLUMNS;
        memcpy(result, problem.d_gain, MANY_COLUMNS * sizeof *result);
        result += MANY_COLUMNS;
        if (norm == LAYER_NORM) {
            memcpy(result, problem.d_shift, MANY_COLUMNS * sizeof *result);
            result += MANY_COLUMNS;
        }
        free_problem(&problem);
    }
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count((2 * MANY_ROWS + 3) * MANY_COLUMNS, many_rows);
}

struct attempt {
    const struct compute *compute;
    struct problem problem;
};

static bool attempt(void *user, struct attn_error *error)
{
    const struct attempt *attempt = user;
    return run(attempt->compute, &attempt->problem, GRADIENT_SET, GRADIENT_SET, error);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int norm = 0; norm < NORMS; norm++) {
        struct attempt one = {&compute, make_problem((enum norm)norm, 20, 9)};
        assert_int_equal(allocation_sweep(attempt, &one), 1);
        free_problem(&one.problem);
    }
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),
        cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_no_row),
        cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
