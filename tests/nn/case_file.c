#include "case_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmocka_test.h"

void *case_file_bytes(const char *name, size_t *size)
{
    char *path = test_data_path(name), *bytes;
    struct attn_error error;
    if (!attn_file_read(path, (size_t)1 << 30, &bytes, size, &error))
        fail_msg("%s", error.message);
    free(path);
    return bytes;
}

const json_t *case_find(const json_t *file, const char *name)
{
    const json_t *cases = case_field(file, "cases", NULL);
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *one = json_array_get(cases, n);
        const char *its_name = json_string_value(json_object_get(one, "name"));
        if (its_name && strcmp(its_name, name) == 0)
            return one;
    }
    fail_msg("there is no case %s", name);
    return NULL;
}

const json_t *case_field(const json_t *object, const char *first, const char *second)
{
    const json_t *field = json_object_get(object, first);
    if (field && second)
        field = json_object_get(field, second);
    if (!field)
        fail_msg("there is no field %s %s", first, second ? second : "");
    return field;
}

float *case_numbers(const json_t *tensor, size_t *count)
{
    const json_t *data = case_field(tensor, "data", NULL);
    size_t size = json_array_size(data);
    float *numbers = calloc(size + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (size_t n = 0; n < size; n++) {
        assert_true(json_is_number(json_array_get(data, n)));
        numbers[n] = (float)json_number_value(json_array_get(data, n));
    }
    if (count)
        *count = size;
    return numbers;
}

void assert_near(const float *actual, const float *expected, size_t count, double tolerance)
{
    size_t worst = 0;
    double largest = 0.0;
    for (size_t n = 0; n < count; n++) {
        double error = fabs((double)actual[n] - (double)expected[n]);
        if (!(error <= largest)) {
            worst = n;
            largest = error;
            if (isnan(error))
                break;
        }
    }
    if (!(largest <= tolerance))
        fail_msg("number %zu of %zu is %.9g, expected %.9g within %g", worst, count,
                 (double)actual[worst], (double)expected[worst], tolerance);
}
