#include <math.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "train/schedule.h"

static void check_case(const char *name, enum schedule_kind kind)
{
    json_t *file = test_data_json("cases/schedule-and-optimizer.json");
    const json_t *one = case_find(file, name);
    struct schedule schedule = {kind, json_number_value(case_field(one, "input", "base")), 0.0,
                                json_integer_value(case_field(one, "input", "warmup")),
                                json_integer_value(case_field(one, "input", "total"))};
    const json_t *steps = case_field(one, "input", "steps");
    const json_t *rates = case_field(one, "expected", "rate");
    assert_true(json_array_size(steps) > 0);
    for (size_t n = 0; n < json_array_size(steps); n++) {
        double rate = schedule_rate(&schedule, json_integer_value(json_array_get(steps, n)));
        double expected = json_number_value(json_array_get(rates, n));
        if (!(fabs(rate - expected) <= json_number_value(case_field(one, "tolerance", NULL))))
            fail_msg("%s, place %zu: the rate is %.9g, expected %.9g", name, n, rate, expected);
    }
    json_decref(file);
}

static void test_linear(void **state)
{
    (void)state;
    check_case("linear_two_of_ten", SCHEDULE_LINEAR);
}

static void test_cosine(void **state)
{
    (void)state;
    check_case("cosine_one_of_nine", SCHEDULE_COSINE);
}

static void test_last_rate(void **state)
{
    (void)state;
    const enum schedule_kind kinds[] = {SCHEDULE_LINEAR, SCHEDULE_COSINE};
    for (int i = 0; i < 2; i++) {
        struct schedule schedule = {kinds[i], 1.0, 0.1, 4, 20};
        assert_true(schedule_rate(&schedule, 4) == 1.0);
        assert_true(fabs(schedule_rate(&schedule, 12) - 0.55) <= 1e-12);
        for (int64_t step = 5; step < 20; step++)
            assert_true(schedule_rate(&schedule, step) < schedule_rate(&schedule, step - 1));
        assert_true(schedule_rate(&schedule, 19) > 0.1);
        assert_true(schedule_rate(&schedule, 20) == 0.1);
        assert_true(schedule_rate(&schedule, 1000000) == 0.1);
    }
}

static void test_without_a_warmup(void **state)
{
    (void)state;
    struct schedule schedule = {SCHEDULE_COSINE, 2.0, 0.0, 0, 1};
    assert_true(schedule_rate(&schedule, 0) == 2.0);
    assert_true(schedule_rate(&schedule, 1) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_last_rate),
        cmocka_unit_test(test_without_a_warmup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
