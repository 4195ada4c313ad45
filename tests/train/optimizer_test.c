#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "step_parameters.h"
#include "train/optimizer.h"

static struct optimizer make_optimizer(const struct parameters *parameters,
                                       const struct optimizer_settings *settings)
{
    struct optimizer optimizer;
    struct attn_error error;
    if (!optimizer_create(&optimizer, parameters, settings, &error))
        fail_msg("%s", error.message);
    return optimizer;
}

static double input_number(const json_t *one, const char *name)
{
    return json_number_value(case_field(one, "input", name));
}

static struct optimizer_settings read_settings(const json_t *one)
{
    return (struct optimizer_settings){input_number(one, "beta1"), input_number(one, "beta2"),
                                       input_number(one, "eps"), input_number(one, "decay")};
}

/* values, gradients or means of the only tensor from a case's numbers. */
static void set_numbers(float *numbers, const json_t *tensor)
{
    size_t count;
    float *given = case_numbers(tensor, &count);
    memcpy(numbers, given, count * sizeof *given);
    free(given);
}

static void check_numbers(const float *numbers, const json_t *tensor, double tolerance)
{
    size_t count;
    float *expected = case_numbers(tensor, &count);
    assert_near(numbers, expected, count, tolerance);
    free(expected);
}

static void test_three_steps(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, "three_steps");
    struct compute compute = make_compute(1);
    struct parameters parameters = {0};
    add_tensor(&parameters, "w", 1, 2);
    allocate_parameters(&parameters);
    struct optimizer_settings settings = read_settings(one);
    struct optimizer optimizer = make_optimizer(&parameters, &settings);
    set_numbers(parameters.values, case_field(one, "input", "param"));
    const json_t *gradients = case_field(one, "input", "gradients");
    const json_t *after = case_field(one, "expected", "param_after");
    assert_int_equal(json_array_size(gradients), 3);
    for (size_t n = 0; n < 3; n++) {
        set_numbers(parameters.gradients, json_array_get(gradients, n));
        optimizer_step(&optimizer, &parameters, &compute, input_number(one, "lr"), 1.0);
        check_numbers(parameters.values, json_array_get(after, n),
                      json_number_value(case_field(one, "tolerance", NULL)));
    }
    assert_int_equal(optimizer.steps, 3);
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
    compute_destroy(&compute);
    json_decref(file);
}

static void test_sixth_step_after_resuming(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, "sixth_step_after_resuming");
    struct compute compute = make_compute(1);
    struct parameters parameters = {0};
    add_tensor(&parameters, "w", 1, 2);
    allocate_parameters(&parameters);
    struct optimizer_settings settings = read_settings(one);
    struct optimizer optimizer = make_optimizer(&parameters, &settings);
    set_numbers(parameters.values, case_field(one, "input", "param"));
    set_numbers(optimizer.first, case_field(one, "input", "m"));
    set_numbers(optimizer.second, case_field(one, "input", "v"));
    set_numbers(parameters.gradients, case_field(one, "input", "gradient"));
    optimizer.steps = (int64_t)input_number(one, "steps_done");
    optimizer_step(&optimizer, &parameters, &compute, input_number(one, "lr"), 1.0);
    const json_t *tolerance = case_field(one, "tolerance", NULL);
    check_numbers(parameters.values, case_field(one, "expected", "param"),
                  json_number_value(json_object_get(tolerance, "param")));
    check_numbers(optimizer.first, case_field(one, "expected", "m"),
                  json_number_value(json_object_get(tolerance, "m")));
    check_numbers(optimizer.second, case_field(one, "expected", "v"),
                  json_number_value(json_object_get(tolerance, "v")));
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
    compute_destroy(&compute);
    json_decref(file);
}

static void test_decay_of_matrices_only(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, "decay_of_matrices_only");
    struct compute compute = make_compute(1);
    struct parameters parameters = {0};
    const char *name;
    json_t *tensor;
    json_object_foreach ((json_t *)(uintptr_t)case_field(one, "input", "params"), name, tensor) {
        const json_t *shape = case_field(tensor, "shape", NULL);
        add_tensor(&parameters, name, json_integer_value(json_array_get(shape, 0)),
                   json_integer_value(json_array_get(shape, 1)));
    }
    allocate_parameters(&parameters);
    struct optimizer_settings settings = {0.9, 0.999, 1e-8, input_number(one, "decay")};
    struct optimizer optimizer = make_optimizer(&parameters, &settings);
    for (size_t i = 0; i < parameters.item_count; i++)
        set_numbers(parameters.values + parameters.items[i].begin,
                    json_object_get(case_field(one, "input", "params"), parameters.items[i].name));
    optimizer_step(&optimizer, &parameters, &compute, input_number(one, "lr"), 1.0);
    for (size_t i = 0; i < parameters.item_count; i++)
        check_numbers(
            parameters.values + parameters.items[i].begin,
            json_object_get(case_field(one, "expected", "params"), parameters.items[i].name),
            json_number_value(case_field(one, "tolerance", NULL)));
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
    compute_destroy(&compute);
    json_decref(file);
}

/* A layout with parts of blocks, padding, and tensors of more than a block. */
static void make_layout(struct parameters *parameters)
{
    *parameters = (struct parameters){0};
    add_tensor(parameters, "small", 3, 5);
    add_tensor(parameters, "large", 300, 331);
    add_tensor(parameters, "vector", 16385, 0);
    add_tensor(parameters, "one", 1, 0);
    allocate_parameters(parameters);
    fill_parameters(parameters);
}

/* Algorithm 2 of the paper, in double. */
static void test_against_double(void **state)
{
    (void)state;
    enum { STEPS = 5 };
    const double rate = 0.01, factor = 0.25;
    struct compute compute = make_compute(2);
    struct parameters parameters;
    make_layout(&parameters);
    struct optimizer_settings settings = {0.9, 0.99, 1e-8, 0.1};
    struct optimizer optimizer = make_optimizer(&parameters, &settings);
    size_t count = (size_t)parameters.count;
    double *theta = calloc(count, sizeof *theta), *m = calloc(count, sizeof *m);
    double *v = calloc(count, sizeof *v);
    for (size_t n = 0; n < count; n++)
        theta[n] = (double)parameters.values[n];
    for (int t = 1; t <= STEPS; t++) {
        optimizer_step(&optimizer, &parameters, &compute, rate, factor);
        for (size_t i = 0; i < parameters.item_count; i++) {
            const struct parameter *item = &parameters.items[i];
            double kept = item->rank == 2 ? 1.0 - rate * settings.decay : 1.0;
            for (int64_t n = item->begin; n < item->begin + item->count; n++) {
                double g = factor * (double)parameters.gradients[n];
                m[n] = 0.9 * m[n] + 0.1 * g;
                v[n] = 0.99 * v[n] + 0.01 * g * g;
                theta[n] = kept * theta[n] - rate * (m[n] / (1.0 - pow(0.9, t))) /
                                                 (sqrt(v[n] / (1.0 - pow(0.99, t))) + 1e-8);
            }
        }
    }
    for (size_t n = 0; n < count; n++) {
        double error = fabs((double)parameters.values[n] - theta[n]);
        if (!(error <= 1e-6))
            fail_msg("number %zu is %.9g, expected %.9g", n, (double)parameters.values[n],
                     theta[n]);
    }
    free(theta);
    free(m);
    free(v);
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
    compute_destroy(&compute);
}

/* Padding between tensors is nobody's. */
static void test_padding_stays_zero(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct parameters parameters;
    make_layout(&parameters);
    struct optimizer_settings settings = {0.9, 0.99, 1e-8, 0.1};
    struct optimizer optimizer = make_optimizer(&parameters, &settings);
    optimizer_step(&optimizer, &parameters, &compute, 0.1, 1.0);
    int64_t end = 0;
    for (size_t i = 0; i < parameters.item_count; i++) {
        for (int64_t n = end; n < parameters.items[i].begin; n++)
            assert_true(parameters.values[n] == 0.0f && optimizer.first[n] == 0.0f);
        end = parameters.items[i].begin + parameters.items[i].count;
    }
    assert_true(parameters.count > end); /* there is some */
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
    compute_destroy(&compute);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    struct parameters one, four;
    struct optimizer_settings settings = {0.9, 0.99, 1e-8, 0.1};
    struct parameters *both[] = {&one, &four};
    const int threads[] = {1, 4};
    for (int i = 0; i < 2; i++) {
        struct compute compute = make_compute(threads[i]);
        make_layout(both[i]);
        struct optimizer optimizer = make_optimizer(both[i], &settings);
        for (int n = 0; n < 3; n++)
            optimizer_step(&optimizer, both[i], &compute, 0.01, 0.5);
        optimizer_destroy(&optimizer);
        compute_destroy(&compute);
    }
    assert_memory_equal(one.values, four.values, (size_t)one.count * sizeof(float));
    parameters_release(&one);
    parameters_release(&four);
}

static bool create_and_destroy(void *user, struct attn_error *error)
{
    struct optimizer optimizer;
    struct optimizer_settings settings = {0.9, 0.99, 1e-8, 0.1};
    bool done = optimizer_create(&optimizer, user, &settings, error);
    if (done)
        optimizer_destroy(&optimizer);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct parameters parameters;
    make_layout(&parameters);
    assert_true(allocation_sweep(create_and_destroy, &parameters) >= 1);
    parameters_release(&parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_steps),
        cmocka_unit_test(test_sixth_step_after_resuming),
        cmocka_unit_test(test_decay_of_matrices_only),
        cmocka_unit_test(test_against_double),
        cmocka_unit_test(test_padding_stays_zero),
        cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
