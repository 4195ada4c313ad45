#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/linear.h"

/* The handed cases of multi-head attention with masks: projections of src/nn around attn_forward on
 * [batch][length][heads][d] views. */

static int64_t extent(const json_t *tensor, size_t axis)
{
    const json_t *size = json_array_get(case_field(tensor, "shape", NULL), axis);
    assert_true(json_is_integer(size));
    return json_integer_value(size);
}

static float *optional_numbers(const json_t *object, const char *name)
{
    const json_t *tensor = json_object_get(object, name);
    return tensor ? case_numbers(tensor, NULL) : NULL;
}

static float *new_numbers(int64_t count)
{
    float *numbers = malloc((size_t)count * sizeof *numbers);
    assert_non_null(numbers);
    return numbers;
}

/* y = x·Wᵀ + b of the case's weight w`name` and bias b`name`, newly allocated. */
static float *project(const json_t *input, char name, int64_t rows, const float *x)
{
    const char weight_name[] = {'w', name, '\0'}, bias_name[] = {'b', name, '\0'};
    float *weight = case_numbers(case_field(input, weight_name, NULL), NULL);
    float *bias = optional_numbers(input, bias_name);
    const struct linear layer = {
        .weight = weight,
        .bias = bias,
        .in = extent(case_field(input, weight_name, NULL), 1),
        .out = extent(case_field(input, weight_name, NULL), 0),
    };
    float *y = new_numbers(rows * layer.out);
    linear_forward(&layer, rows, x, layer.in, y, layer.out);
    free(weight);
    free(bias);
    return y;
}

/* Which keys are kept: [batch·heads][query][key], batch by batch, or [batch][key] for all. Returns
 * the bytes, newly allocated, or NULL where every key is. */
static unsigned char *read_mask(const json_t *input, int64_t batch, int64_t heads, int64_t length,
                                attn_tensor *mask)
{
    const bool by_key = json_object_get(input, "key_keep") != NULL;
    float *numbers = optional_numbers(input, by_key ? "key_keep" : "keep_nh");
    if (!numbers)
        return NULL;
    const int64_t count = by_key ? batch * length : batch * heads * length * length;
    unsigned char *keep = malloc((size_t)count);
    assert_non_null(keep);
    for (int64_t n = 0; n < count; n++)
        keep[n] = numbers[n] != 0.0f;
    free(numbers);
    *mask =
        attn_tensor_packed(keep, ATTN_BOOL, batch, by_key ? 1 : heads, by_key ? 1 : length, length);
    return keep;
}

static void assert_zeros(const json_t *one, const char *name, const float *numbers)
{
    const json_t *list = json_object_get(json_object_get(one, "exact_zeros"), name);
    for (size_t n = 0; n < json_array_size(list); n++)
        assert_true(numbers[json_integer_value(json_array_get(list, n))] == 0.0f);
}

static void assert_expected(const json_t *one, const char *name, const float *actual)
{
    size_t count;
    float *expected = case_numbers(case_field(one, "expected", name), &count);
    assert_near(actual, expected, count, json_number_value(case_field(one, "tolerance", name)));
    assert_zeros(one, name, actual);
    free(expected);
}

static void follows_case(const struct compute *compute, const json_t *one)
{
    const json_t *input = case_field(one, "input", NULL), *x_tensor = case_field(input, "x", NULL);
    const int64_t batch = extent(x_tensor, 0), length = extent(x_tensor, 1);
    const int64_t width = extent(x_tensor, 2), rows = batch * length;
    const int64_t heads = json_integer_value(case_field(input, "heads", NULL)), d = width / heads;
    float *x = case_numbers(x_tensor, NULL);
    float *const parts[] = {project(input, 'q', rows, x), project(input, 'k', rows, x),
                            project(input, 'v', rows, x), new_numbers(rows * width)};
    attn_tensor views[4];
    for (int n = 0; n < 4; n++)
        views[n] = (attn_tensor){.data = parts[n],
                                 .type = ATTN_F32,
                                 .shape = {batch, heads, length, d},
                                 .stride = {length * width, d, width, 1}};
    float *statistics = new_numbers(batch * heads * length * 2);
    float *weights = new_numbers(batch * heads * length * length);
    const attn_tensor stats = attn_tensor_packed(statistics, ATTN_F32, batch, heads, length, 2);
    const attn_tensor p = attn_tensor_packed(weights, ATTN_F32, batch, heads, length, length);

    attn_params params;
    attn_params_init(&params);
    attn_tensor mask;
    unsigned char *keep = read_mask(input, batch, heads, length, &mask);
    params.keep = keep ? &mask : NULL;
    const json_t *causal = json_object_get(input, "causal");
    params.causal = causal != NULL;
    params.alignment = ATTN_ALIGN_OFFSET;
    params.offset = causal ? json_integer_value(case_field(causal, "offset", NULL)) : 0;
    assert_int_equal(attn_forward(compute->attention, &params, &views[0], &views[1], &views[2],
                                  &views[3], &stats),
                     ATTN_SUCCESS);
    assert_int_equal(
        attn_weights(compute->attention, &params, &views[0], &views[1], &stats, NULL, &p),
        ATTN_SUCCESS);
    float *y = project(input, 'o', rows, parts[3]);
    assert_expected(one, "y", y);
    assert_expected(one, "weights", weights);

    for (int n = 0; n < 4; n++)
        free(parts[n]);
    free(y);
    free(keep);
    free(weights);
    free(statistics);
    free(x);
}

static void all_cases(const struct compute *compute)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *cases = case_field(file, "cases", NULL);
    int found = 0;
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *one = json_array_get(cases, n);
        const char *operation = json_string_value(json_object_get(one, "op"));
        if (operation && strcmp(operation, "mha") == 0) {
            follows_case(compute, one);
            found++;
        }
    }
    assert_int_equal(found, 4);
    json_decref(file);
}

static void test_cases_of_multi_head_attention(void **state)
{
    (void)state;
    each_isa(1, all_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases_of_multi_head_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
