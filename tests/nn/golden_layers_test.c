/* The layers and their gradients against PyTorch: tests/data/nn/layers.json, which
 * scripts/golden_layers.py makes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/activation.h"
#include "nn/cross_entropy.h"
#include "nn/embedding_table.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"

static json_t *file;

enum { MOST_TENSORS = 8 };

/* A case, and what was allocated for it. */
struct golden {
    const json_t *one;
    void *memory[MOST_TENSORS * 2];
    int allocations;
};

static struct golden open_case(const char *name)
{
    return (struct golden){.one = case_find(file, name)};
}

static void close_case(struct golden *golden)
{
    for (int n = 0; n < golden->allocations; n++)
        free(golden->memory[n]);
}

static float *keep(struct golden *golden, float *numbers)
{
    assert_non_null(numbers);
    assert_true(golden->allocations < MOST_TENSORS * 2);
    golden->memory[golden->allocations++] = numbers;
    return numbers;
}

static float *input(struct golden *golden, const char *name)
{
    return keep(golden, case_numbers(case_field(golden->one, "input", name), NULL));
}

static int64_t size_of(const struct golden *golden, const char *name, size_t axis)
{
    const json_t *shape = case_field(case_field(golden->one, "input", name), "shape", NULL);
    return json_integer_value(json_array_get(shape, axis));
}

/* Room for what is expected under this name, full of NaN. */
static float *room(struct golden *golden, const char *name)
{
    size_t count;
    float *numbers = case_numbers(case_field(golden->one, "expected", name), &count);
    for (size_t n = 0; n < count; n++)
        numbers[n] = NAN;
    return keep(golden, numbers);
}

/* Within 2·10⁻⁶ of the largest number that is expected. */
static void check(const struct golden *golden, const char *name, const float *actual)
{
    size_t count;
    float *expected = case_numbers(case_field(golden->one, "expected", name), &count);
    double largest = 0.0;
    for (size_t n = 0; n < count; n++)
        largest = fmax(largest, fabs((double)expected[n]));
    assert_near(actual, expected, count, 2e-6 * largest);
    free(expected);
}

static void check_linear(const char *name, enum linear_layout layout)
{
    struct golden golden = open_case(name);
    const int64_t rows = size_of(&golden, "x", 0), in = size_of(&golden, "x", 1);
    const int64_t out = size_of(&golden, "dy", 1);
    const float *x = input(&golden, "x"), *dy = input(&golden, "dy");
    const struct linear layer = {.weight = input(&golden, "weight"),
                                 .bias = input(&golden, "bias"),
                                 .in = in,
                                 .out = out,
                                 .layout = layout};
    float *y = room(&golden, "y"), *dx = room(&golden, "dx");
    const struct linear_gradient gradient = {room(&golden, "dweight"), room(&golden, "dbias"),
                                             GRADIENT_SET};
    linear_forward(&layer, rows, x, in, y, out);
    linear_backward(&layer, rows, x, in, dy, out, dx, in, GRADIENT_SET, &gradient);
    check(&golden, "y", y);
    check(&golden, "dx", dx);
    check(&golden, "dweight", gradient.weight);
    check(&golden, "dbias", gradient.bias);
    close_case(&golden);
}

static void test_linear(void **state)
{
    (void)state;
    check_linear("linear", LINEAR_OUT_IN);
    check_linear("linear_in_out", LINEAR_IN_OUT);
}

static float epsilon_of(const struct golden *golden)
{
    return (float)json_number_value(case_field(golden->one, "input", "eps"));
}

static void check_layer_norm(const struct compute *compute, const char *name)
{
    struct golden golden = open_case(name);
    const int64_t rows = size_of(&golden, "x", 0), width = size_of(&golden, "x", 1);
    const float *x = input(&golden, "x"), *dy = input(&golden, "dy");
    const struct layer_norm layer = {input(&golden, "gain"), input(&golden, "shift"), width,
                                     epsilon_of(&golden)};
    float *y = room(&golden, "y"), *dx = room(&golden, "dx");
    const struct layer_norm_gradient gradient = {room(&golden, "dgain"), room(&golden, "dshift"),
                                                 GRADIENT_SET};
    struct attn_error error;
    layer_norm_forward(compute, &layer, rows, x, NULL, y);
    assert_true(
        layer_norm_backward(compute, &layer, rows, x, dy, dx, GRADIENT_SET, &gradient, &error));
    check(&golden, "y", y);
    check(&golden, "dx", dx);
    check(&golden, "dgain", gradient.gain);
    check(&golden, "dshift", gradient.shift);
    close_case(&golden);
}

static void check_rms_norm(const struct compute *compute, const char *name)
{
    struct golden golden = open_case(name);
    const int64_t rows = size_of(&golden, "x", 0), width = size_of(&golden, "x", 1);
    const float *x = input(&golden, "x"), *dy = input(&golden, "dy");
    const struct rms_norm layer = {input(&golden, "gain"), width, epsilon_of(&golden)};
    float *y = room(&golden, "y"), *dx = room(&golden, "dx");
    const struct rms_norm_gradient gradient = {room(&golden, "dgain"), GRADIENT_SET};
    struct attn_error error;
    rms_norm_forward(compute, &layer, rows, x, y);
    assert_true(
        rms_norm_backward(compute, &layer, rows, x, dy, dx, GRADIENT_SET, &gradient, &error));
    check(&golden, "y", y);
    check(&golden, "dx", dx);
    check(&golden, "dgain", gradient.gain);
    close_case(&golden);
}

static void norms(const struct compute *compute)
{
    check_layer_norm(compute, "layer_norm");
    check_layer_norm(compute, "layer_norm_narrow");
    check_rms_norm(compute, "rms_norm");
    check_rms_norm(compute, "rms_norm_narrow");
}

static void test_norms(void **state)
{
    (void)state;
    each_isa(2, norms);
}

static void check_activation(const struct compute *compute, const char *name,
                             enum activation activation)
{
    struct golden golden = open_case(name);
    const int64_t rows = size_of(&golden, "x", 0), width = size_of(&golden, "x", 1);
    const float *x = input(&golden, "x"), *dy = input(&golden, "dy");
    float *y = room(&golden, "y"), *dx = room(&golden, "dx");
    activation_apply(compute, activation, rows, width, x, y);
    activation_backward(compute, activation, rows, width, x, dy, dx);
    check(&golden, "y", y);
    check(&golden, "dx", dx);
    close_case(&golden);
}

static void check_swiglu(const struct compute *compute)
{
    struct golden golden = open_case("swiglu");
    const int64_t rows = size_of(&golden, "gate", 0), width = size_of(&golden, "gate", 1);
    const float *gate = input(&golden, "gate"), *up = input(&golden, "up");
    const float *dy = input(&golden, "dy");
    float *y = room(&golden, "y"), *d_gate = room(&golden, "dgate"), *d_up = room(&golden, "dup");
    swiglu_forward(compute, rows, width, gate, up, y);
    swiglu_backward(compute, rows, width, gate, up, dy, d_gate, d_up);
    check(&golden, "y", y);
    check(&golden, "dgate", d_gate);
    check(&golden, "dup", d_up);
    close_case(&golden);
}

static void activations(const struct compute *compute)
{
    check_activation(compute, "gelu_erf", ACTIVATION_GELU_ERF);
    check_activation(compute, "gelu_tanh", ACTIVATION_GELU_TANH);
    check_activation(compute, "relu", ACTIVATION_RELU);
    check_activation(compute, "silu", ACTIVATION_SILU);
    check_swiglu(compute);
}

static void test_activations(void **state)
{
    (void)state;
    each_isa(2, activations);
}

/* A list of whole numbers of the input. */
static int64_t whole_numbers(const struct golden *golden, const char *name, int32_t *numbers,
                             size_t room_for)
{
    const json_t *list = case_field(golden->one, "input", name);
    size_t count = json_array_size(list);
    assert_true(0 < count && count <= room_for);
    for (size_t n = 0; n < count; n++)
        numbers[n] = (int32_t)json_integer_value(json_array_get(list, n));
    return (int64_t)count;
}

static void test_embedding(void **state)
{
    (void)state;
    struct golden golden = open_case("embedding");
    const int64_t words = size_of(&golden, "table", 0), width = size_of(&golden, "table", 1);
    int32_t ids[16];
    const int64_t tokens = whole_numbers(&golden, "ids", ids, 16);
    const float *table = input(&golden, "table"), *dy = input(&golden, "dy");
    float *y = room(&golden, "y"), *gradient = room(&golden, "dtable");
    struct compute compute = make_compute(2);
    embedding_table_forward(&compute, table, width, tokens, ids, y, GRADIENT_SET);
    memset(gradient, 0, (size_t)(words * width) * sizeof *gradient);
    embedding_table_backward(&compute, width, tokens, ids, dy, gradient);
    compute_destroy(&compute);
    check(&golden, "y", y);
    check(&golden, "dtable", gradient);
    close_case(&golden);
}

/* PyTorch's mean: the gradient by 1 / labels that count. */
static void check_loss(const struct compute *compute, const char *name)
{
    struct golden golden = open_case(name);
    int32_t labels[16];
    const int64_t rows = whole_numbers(&golden, "labels", labels, 16);
    const int64_t classes = size_of(&golden, "logits", 1);
    int64_t counting = 0;
    for (int64_t r = 0; r < rows; r++)
        counting += labels[r] != CROSS_ENTROPY_IGNORE;
    const float *logits = input(&golden, "logits");
    float *gradient = room(&golden, "dlogits");
    struct cross_entropy sum = {0.0, 0};
    struct attn_error error;
    assert_true(cross_entropy_add(compute, rows, classes, logits, classes, labels,
                                  1.0f / (float)counting, gradient, &sum, &error));
    double expected = json_number_value(case_field(golden.one, "expected", "loss"));
    assert_int_equal(sum.counts, counting);
    if (!(fabs(sum.loss / (double)sum.counts - expected) <= 1e-7 * fmax(1.0, expected)))
        fail_msg("loss %.12g, expected %.12g", sum.loss / (double)sum.counts, expected);
    check(&golden, "dlogits", gradient);
    close_case(&golden);
}

static void losses(const struct compute *compute)
{
    check_loss(compute, "cross_entropy");
    check_loss(compute, "cross_entropy_large");
}

static void test_losses(void **state)
{
    (void)state;
    each_isa(2, losses);
}

static int open_file(void **state)
{
    (void)state;
    file = test_data_json("nn/layers.json");
    return 0;
}

static int close_file(void **state)
{
    (void)state;
    json_decref(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),      cmocka_unit_test(test_norms),
        cmocka_unit_test(test_activations), cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
