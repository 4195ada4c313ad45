#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/self_attention.h"

/* The values are PyTorch's, from scripts/golden_self_attention.py. */

/* One case: its numbers, and the layer and gradients that point into them. Parameters that PyTorch
 * keeps in one tensor lie in one block here too. */
struct golden {
    const json_t *one;
    struct self_attention layer;
    struct self_attention_gradient gradient;
    struct {
        const char *name;
        float *value, *gradient, *expected;
        size_t count;
    } parameters[8];
    size_t parameter_count;
};

static float *new_numbers(size_t count)
{
    float *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    for (size_t n = 0; n < count; n++)
        numbers[n] = NAN;
    return numbers;
}

/* Reads the parameter of this name; false where the case has none. */
static bool read_parameter(struct golden *golden, const char *name, float **value, float **gradient)
{
    const json_t *values = json_object_get(golden->one, "parameters");
    if (!json_object_get(values, name))
        return false;
    size_t n = golden->parameter_count++, expected_count;
    golden->parameters[n].name = name;
    *value = golden->parameters[n].value =
        case_numbers(case_field(values, name, NULL), &golden->parameters[n].count);
    golden->parameters[n].expected =
        case_numbers(case_field(golden->one, "gradients", name), &expected_count);
    assert_int_equal(expected_count, golden->parameters[n].count);
    *gradient = golden->parameters[n].gradient = new_numbers(expected_count);
    return true;
}

/* A weight of its own. */
static void place(struct golden *golden, const char *name, struct linear *layer,
                  struct linear_gradient *gradient)
{
    float *value, *slot;
    assert_true(read_parameter(golden, name, &value, &slot));
    layer->weight = value;
    gradient->weight = slot;
}

/* Query, key and value as parts of one weight, `step` numbers apart, in rows of `stride`. */
static void place_parts(struct golden *golden, const char *name, int64_t step, int64_t stride)
{
    struct linear *parts[] = {&golden->layer.query, &golden->layer.key, &golden->layer.value};
    struct linear_gradient *gradients[] = {&golden->gradient.query, &golden->gradient.key,
                                           &golden->gradient.value};
    float *value, *slot;
    assert_true(read_parameter(golden, name, &value, &slot));
    for (int n = 0; n < 3; n++) {
        parts[n]->weight = value + n * step;
        parts[n]->weight_stride = stride;
        gradients[n]->weight = slot + n * step;
    }
}

static void place_biases(struct golden *golden, const char *input, const char *output)
{
    struct linear *parts[] = {&golden->layer.query, &golden->layer.key, &golden->layer.value};
    struct linear_gradient *gradients[] = {&golden->gradient.query, &golden->gradient.key,
                                           &golden->gradient.value};
    float *value, *slot;
    if (!read_parameter(golden, input, &value, &slot))
        return;
    for (int n = 0; n < 3; n++) {
        parts[n]->bias = value + n * parts[n]->out;
        gradients[n]->bias = slot + n * parts[n]->out;
    }
    assert_true(read_parameter(golden, output, &value, &slot));
    golden->layer.output.bias = value;
    golden->gradient.output.bias = slot;
}

static struct golden open_golden(const json_t *one)
{
    struct golden golden = {.one = one};
    const char *kind = json_string_value(case_field(one, "kind", NULL));
    const int64_t width = json_integer_value(case_field(one, "width", NULL));
    const struct linear square = {.in = width, .out = width};
    struct self_attention *layer = &golden.layer;
    struct self_attention_gradient *gradient = &golden.gradient;
    layer->query = layer->key = layer->value = layer->output = square;
    layer->heads = json_integer_value(case_field(one, "heads", NULL));
    layer->sight =
        json_is_true(case_field(one, "causal", NULL)) ? SELF_ATTENTION_CAUSAL : SELF_ATTENTION_ALL;
    if (strcmp(kind, "conv1d") == 0) {
        layer->query.layout = layer->key.layout = layer->value.layout = layer->output.layout =
            LINEAR_IN_OUT;
        place_parts(&golden, "c_attn.weight", width, 3 * width);
        place(&golden, "c_proj.weight", &layer->output, &gradient->output);
        place_biases(&golden, "c_attn.bias", "c_proj.bias");
        return golden;
    }
    if (strcmp(kind, "packed") == 0) {
        place_parts(&golden, "in_proj_weight", width * width, 0);
    } else {
        place(&golden, "q_proj_weight", &layer->query, &gradient->query);
        place(&golden, "k_proj_weight", &layer->key, &gradient->key);
        place(&golden, "v_proj_weight", &layer->value, &gradient->value);
    }
    place(&golden, "out_proj.weight", &layer->output, &gradient->output);
    place_biases(&golden, "in_proj_bias", "out_proj.bias");
    return golden;
}

static void close_golden(struct golden *golden)
{
    for (size_t n = 0; n < golden->parameter_count; n++) {
        free(golden->parameters[n].value);
        free(golden->parameters[n].gradient);
        free(golden->parameters[n].expected);
    }
}

/* ‖actual − expected‖ ≤ bound·‖expected‖. */
static void assert_close(const json_t *one, const char *name, const float *actual,
                         const float *expected, size_t count, double bound)
{
    double error = 0.0, norm = 0.0;
    for (size_t n = 0; n < count; n++) {
        error += pow((double)actual[n] - (double)expected[n], 2.0);
        norm += pow((double)expected[n], 2.0);
    }
    if (!(sqrt(error) <= bound * sqrt(norm)))
        fail_msg("%s: %s is off by %g of its norm", json_string_value(json_object_get(one, "name")),
                 name, sqrt(error / norm));
}

static void gives_the_numbers(const struct compute *compute, const json_t *one)
{
    struct golden golden = open_golden(one);
    assert_int_equal(golden.parameter_count, json_object_size(json_object_get(one, "parameters")));
    const json_t *list = case_field(one, "starts", NULL);
    int64_t starts[8];
    assert_in_range(json_array_size(list), 2, 8);
    for (size_t n = 0; n < json_array_size(list); n++)
        starts[n] = json_integer_value(json_array_get(list, n));
    const struct packed_batch batch = {(int64_t)json_array_size(list) - 1, starts};
    const int64_t tokens = packed_batch_tokens(&batch);

    size_t count;
    float *x = case_numbers(case_field(one, "x", NULL), &count);
    float *dy = case_numbers(case_field(one, "dy", NULL), NULL);
    float *expected_y = case_numbers(case_field(one, "y", NULL), NULL);
    float *expected_dx = case_numbers(case_field(one, "dx", NULL), NULL);
    float *y = new_numbers(count), *dx = new_numbers(count);
    float *saved = new_numbers((size_t)self_attention_workspace(&golden.layer, tokens));
    float *workspace =
        new_numbers((size_t)self_attention_backward_workspace(&golden.layer, tokens));
    struct attn_error error;
    assert_true(self_attention_learn(compute, &golden.layer, &batch, NULL, x, y, saved, &error));
    assert_true(self_attention_backward(compute, &golden.layer, &batch, NULL, x, saved, dy, dx,
                                        GRADIENT_SET, &golden.gradient, workspace, &error));
    const double bound = 1e-5;
    assert_close(one, "y", y, expected_y, count, bound);
    assert_close(one, "dx", dx, expected_dx, count, bound);
    for (size_t n = 0; n < golden.parameter_count; n++)
        assert_close(one, golden.parameters[n].name, golden.parameters[n].gradient,
                     golden.parameters[n].expected, golden.parameters[n].count, bound);

    float *const numbers[] = {x, dy, expected_y, expected_dx, y, dx, saved, workspace};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        free(numbers[n]);
    close_golden(&golden);
}

static void all_cases(const struct compute *compute)
{
    json_t *file = test_data_json("nn/self_attention.json");
    const json_t *cases = case_field(file, "cases", NULL);
    assert_int_equal(json_array_size(cases), 5);
    for (size_t n = 0; n < json_array_size(cases); n++)
        gives_the_numbers(compute, json_array_get(cases, n));
    json_decref(file);
}

static void test_pytorch(void **state)
{
    (void)state;
    each_isa(2, all_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
