#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "step_parameters.h"
#include "train/gradient_norm.h"

/* The tensors of a case, as parameters. */
static void take_gradients(struct parameters *parameters, const json_t *gradients)
{
    *parameters = (struct parameters){0};
    for (size_t i = 0; i < json_array_size(gradients); i++) {
        const json_t *data = case_field(json_array_get(gradients, i), "data", NULL);
        add_tensor(parameters, "g", (int64_t)json_array_size(data), 0);
    }
    allocate_parameters(parameters);
    for (size_t i = 0; i < json_array_size(gradients); i++) {
        const json_t *data = case_field(json_array_get(gradients, i), "data", NULL);
        float *place = parameters->gradients + parameters->items[i].begin;
        for (size_t n = 0; n < json_array_size(data); n++) {
            const json_t *number = json_array_get(data, n);
            place[n] = json_is_string(number) ? strtof(json_string_value(number), NULL)
                                              : (float)json_number_value(number);
        }
    }
}

static void check_clip(const char *name)
{
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, name);
    double tolerance = json_number_value(case_field(one, "tolerance", NULL));
    struct compute compute = make_compute(1);
    struct parameters parameters;
    struct attn_error error;
    take_gradients(&parameters, case_field(one, "input", "gradients"));
    double norm;
    assert_true(gradient_norm(&parameters, &compute, &norm, &error));
    double expected = json_number_value(case_field(one, "expected", "norm"));
    assert_true(fabs(norm - expected) <= tolerance);
    double factor =
        gradient_clip_factor(norm, json_number_value(case_field(one, "input", "max_norm")));
    const json_t *clipped = case_field(one, "expected", "gradients");
    for (size_t i = 0; i < parameters.item_count; i++) {
        const json_t *data = case_field(json_array_get(clipped, i), "data", NULL);
        for (size_t n = 0; n < json_array_size(data); n++) {
            double found =
                factor * (double)parameters.gradients[parameters.items[i].begin + (int64_t)n];
            assert_true(fabs(found - json_number_value(json_array_get(data, n))) <= tolerance);
        }
    }
    parameters_release(&parameters);
    compute_destroy(&compute);
    json_decref(file);
}

static void test_clip_zeros(void **state)
{
    (void)state;
    check_clip("clip_zeros");
}

static void test_clip_three_four(void **state)
{
    (void)state;
    check_clip("clip_three_four");
}

static void test_clip_with_an_infinity(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, "clip_with_an_infinity");
    struct compute compute = make_compute(1);
    struct parameters parameters;
    struct attn_error error = {""};
    double norm;
    take_gradients(&parameters, case_field(one, "input", "gradients"));
    assert_false(gradient_norm(&parameters, &compute, &norm, &error));
    assert_message(&error, json_string_value(case_field(one, "expected", "refused")));
    parameters.gradients[1] = NAN;
    assert_false(gradient_norm(&parameters, &compute, &norm, &error));
    parameters_release(&parameters);
    compute_destroy(&compute);
    json_decref(file);
}

/* Numbers whose squares are beyond a float's range, and more than a block of them. */
static void test_large_gradients(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    struct parameters parameters = {0};
    struct attn_error error;
    add_tensor(&parameters, "w", 200, 200);
    allocate_parameters(&parameters);
    for (int64_t n = 0; n < parameters.count; n++)
        parameters.gradients[n] = n % 2 ? 3e38f : -3e38f;
    double norm;
    assert_true(gradient_norm(&parameters, &compute, &norm, &error));
    assert_true(fabs(norm / ((double)3e38f * 200.0) - 1.0) <= 1e-12);
    assert_true(fabs(gradient_clip_factor(norm, 1.0) * norm - 1.0) <= 1e-12);
    assert_true(gradient_clip_factor(norm, 0.0) == 1.0);
    parameters_release(&parameters);
    compute_destroy(&compute);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    struct parameters parameters = {0};
    struct attn_error error;
    add_tensor(&parameters, "w", 333, 1111);
    allocate_parameters(&parameters);
    fill_parameters(&parameters);
    double first = 0.0, reference = 0.0;
    for (int64_t n = 0; n < parameters.count; n++)
        reference += (double)parameters.gradients[n] * (double)parameters.gradients[n];
    for (int threads = 1; threads <= 4; threads++) {
        struct compute compute = make_compute(threads);
        double norm;
        assert_true(gradient_norm(&parameters, &compute, &norm, &error));
        if (threads == 1)
            first = norm;
        assert_memory_equal(&first, &norm, sizeof norm);
        compute_destroy(&compute);
    }
    assert_true(fabs(first / sqrt(reference) - 1.0) <= 1e-12);
    parameters_release(&parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clip_zeros),
        cmocka_unit_test(test_clip_three_four),
        cmocka_unit_test(test_clip_with_an_infinity),
        cmocka_unit_test(test_large_gradients),
        cmocka_unit_test(test_threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
