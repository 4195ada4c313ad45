/* Where parameters lie. */
#include "model/parameters.h"

#include <string.h>

#include "allocation_sweep.h"
#include "base/memory.h"
#include "cmocka_test.h"

static void test_layout(void **state)
{
    (void)state;
    struct parameters parameters = {0};
    struct attn_error error;
    const int64_t matrix[] = {3, 7}, vector[] = {16}, one[] = {1};
    int64_t begins[4];
    assert_true(parameters_add(&parameters, "matrix", 2, matrix, &begins[0], &error));
    assert_true(parameters_add(&parameters, "vector", 1, vector, &begins[1], &error));
    assert_true(parameters_add(&parameters, "one", 1, one, &begins[2], &error));
    assert_true(parameters_add(&parameters, "last", 2, matrix, &begins[3], &error));
    const int64_t expected[] = {0, 32, 48, 64}, counts[] = {21, 16, 1, 21};
    assert_int_equal(parameters.item_count, 4);
    for (size_t n = 0; n < 4; n++) {
        assert_int_equal(begins[n], expected[n]);
        assert_int_equal(parameters.items[n].begin, expected[n]);
        assert_int_equal(parameters.items[n].count, counts[n]);
    }
    assert_string_equal(parameters.items[3].name, "last");
    assert_int_equal(parameters.items[0].shape[1], 7);
    assert_int_equal(parameters.count, 96);

    assert_true(parameters_allocate(&parameters, &error));
    assert_null(parameters.gradients);
    assert_true(parameters_want_gradients(&parameters, &error));
    assert_int_equal((uintptr_t)parameters.values % ATTN_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)parameters.gradients % ATTN_ALIGNMENT, 0);
    for (int64_t i = 0; i < parameters.count; i++)
        assert_true(parameters.values[i] == 0.0f && parameters.gradients[i] == 0.0f);

    /* Asking again changes nothing. */
    parameters.gradients[5] = 3.0f;
    assert_true(parameters_want_gradients(&parameters, &error));
    assert_true(parameters.gradients[5] == 3.0f);
    parameters_release(&parameters);
    assert_null(parameters.values);
    parameters_release(&parameters);
}

static void test_refused(void **state)
{
    (void)state;
    struct parameters parameters = {0};
    struct attn_error error;
    char name[PARAMETER_NAME_SIZE + 1] = "";
    memset(name, 'n', PARAMETER_NAME_SIZE);
    const int64_t small[] = {2, 2}, huge[] = {INT64_MAX / 2, 3}, wide[] = {INT64_MAX / 4};
    int64_t begin;
    assert_false(parameters_add(&parameters, name, 2, small, &begin, &error));
    assert_message(&error, "more than 95 bytes");
    assert_false(parameters_add(&parameters, "huge", 2, huge, &begin, &error));
    assert_message(&error, "huge: the model is too large");
    assert_false(parameters_add(&parameters, "wide", 1, wide, &begin, &error));
    assert_message(&error, "wide: the model is too large");
    assert_int_equal(parameters.item_count, 0);
    assert_int_equal(parameters.count, 0);
    parameters_release(&parameters);
}

static bool add_once(void *user, struct attn_error *error)
{
    (void)user;
    struct parameters parameters = {0};
    const int64_t shape[] = {4, 4};
    int64_t begin;
    bool done = true;
    for (int n = 0; done && n < 9; n++)
        done = parameters_add(&parameters, "matrix", 2, shape, &begin, error);
    parameters_release(&parameters);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    assert_int_equal(allocation_sweep(add_once, NULL), 5); /* 1, 2, 4, 8, 16 items */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
