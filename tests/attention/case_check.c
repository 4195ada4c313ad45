#include "attention/case_check.h"

#include "attention/case_input.h"
#include "harness/compare.h"
#include "harness/test.h"

double case_tolerance(const json_t *json, const char *field)
{
    const json_t *tolerance = json_object_get(json, "tolerance");
    if (json_is_object(tolerance))
        tolerance = json_object_get(tolerance, field);
    return tolerance ? case_number(tolerance) : 0;
}

void case_check_field(const json_t *json, const char *field, const double *actual, size_t count)
{
    const json_t *expected = json_object_get(json_object_get(json, "expected"), field);
    if (!expected)
        return;
    size_t expected_count;
    double *numbers = case_numbers(json_object_get(expected, "data"), &expected_count);
    double *tolerance = guarded_doubles(count);
    for (size_t i = 0; i < count; i++)
        tolerance[i] = case_tolerance(json, field);
    test_context("%s", field);
    CHECK_EQUAL(count, expected_count);
    if (count == expected_count)
        CHECK_NEAR_DOUBLES(actual, numbers, tolerance, count);
    const json_t *zeros = json_object_get(json_object_get(json, "exact_zeros"), field);
    for (size_t i = 0; i < json_array_size(zeros); i++)
        CHECK(actual[json_integer_value(json_array_get(zeros, i))] == 0);
}

void case_check_floats(const json_t *json, const char *field, const float *actual, size_t count)
{
    double *numbers = guarded_doubles(count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = actual[i];
    case_check_field(json, field, numbers, count);
}
