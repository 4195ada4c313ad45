#include "golden_language.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "case_file.h"
#include "cmocka_test.h"

static void *integers(const json_t *array, size_t size)
{
    const size_t count = json_array_size(array);
    char *numbers = calloc(count, size);
    assert_non_null(numbers);
    for (size_t n = 0; n < count; n++) {
        const json_int_t number = json_integer_value(json_array_get(array, n));
        if (size == sizeof(int64_t))
            ((int64_t *)(void *)numbers)[n] = number;
        else
            ((int32_t *)(void *)numbers)[n] = (int32_t)number;
    }
    return numbers;
}

struct golden_language golden_language_open(const char *name)
{
    struct golden_language golden = {0};
    struct attn_error error;
    char folder[64];
    snprintf(folder, sizeof folder, "models/%s", name);
    golden.directory = test_data_path(folder);
    if (!language_model_open(&golden.model, golden.directory, 1, &error))
        fail_msg("%s", error.message);
    language_model_set_dropout(golden.model, 0.0f);

    char *path = attn_path_join(golden.directory, "gradients.safetensors");
    if (!safetensors_open(&golden.gradients, path, &error))
        fail_msg("%s", error.message);
    free(path);

    snprintf(folder, sizeof folder, "models/%s/golden.json", name);
    golden.file = test_data_json(folder);
    const json_t *starts = case_field(golden.file, "starts", NULL);
    golden.starts = integers(starts, sizeof *golden.starts);
    golden.ids = integers(case_field(golden.file, "ids", NULL), sizeof *golden.ids);
    golden.labels = integers(case_field(golden.file, "labels", NULL), sizeof *golden.labels);
    golden.batch = (struct language_batch){
        {(int64_t)json_array_size(starts) - 1, golden.starts}, golden.ids, golden.labels};
    golden.sum = (struct cross_entropy){
        json_number_value(case_field(golden.file, "loss", NULL)),
        json_integer_value(case_field(golden.file, "counts", NULL)),
    };
    golden.vocabulary = language_model_get_settings(golden.model)->vocabulary;
    return golden;
}

void golden_language_close(struct golden_language *golden)
{
    language_model_close(golden->model);
    safetensors_close(golden->gradients);
    json_decref(golden->file);
    free(golden->directory);
    free(golden->starts);
    free(golden->ids);
    free(golden->labels);
}

float *golden_language_logits(const struct golden_language *golden, int64_t sequence)
{
    const json_t *all = case_field(golden->file, "last_logits", NULL);
    const json_t *numbers = json_array_get(all, (size_t)sequence);
    assert_int_equal(json_array_size(numbers), golden->vocabulary);
    float *logits = calloc((size_t)golden->vocabulary, sizeof *logits);
    assert_non_null(logits);
    for (size_t n = 0; n < (size_t)golden->vocabulary; n++)
        logits[n] = (float)json_number_value(json_array_get(numbers, n));
    return logits;
}

struct language_model_step golden_language_step(const struct golden_language *golden)
{
    return (struct language_model_step){
        .dropout_seed = 7,
        .gradient_scale = 1.0f / (float)golden->sum.counts,
        .mode = GRADIENT_SET,
    };
}

struct cross_entropy golden_language_learn(const struct golden_language *golden,
                                           const struct compute *compute,
                                           const struct language_batch *batch,
                                           const struct language_model_step *step)
{
    struct cross_entropy sum = {0};
    struct attn_error error;
    if (!language_model_learn(golden->model, compute, batch, step, &sum, &error))
        fail_msg("%s", error.message);
    return sum;
}

float *golden_language_copy_gradients(const struct golden_language *golden)
{
    const struct parameters *parameters = language_model_parameters(golden->model);
    const size_t bytes = (size_t)parameters->count * sizeof(float);
    float *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, parameters->gradients, bytes);
}

static double norm(const float *numbers, const float *others, int64_t count)
{
    double square = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double number = (double)numbers[i] - (others ? (double)others[i] : 0.0);
        square += number * number;
    }
    return sqrt(square);
}

double golden_language_distance(const struct golden_language *golden, const float *others)
{
    const struct parameters *parameters = language_model_parameters(golden->model);
    return norm(parameters->gradients, others, parameters->count) /
           norm(others, NULL, parameters->count);
}

/* The gradient of a key's bias is 0 by definition, for the softmax does not change when all scores
 * of a row do alike: what is left of it is rounding, measured by the gradient of the key's weight.
 */
static double scale_of(const struct golden_language *golden, const char *name,
                       const float *expected, int64_t count)
{
    static const char key_bias[] = "attention.self.key.bias";
    const char *found = strstr(name, key_bias);
    if (!found)
        return norm(expected, NULL, count);
    char weight[PARAMETER_NAME_SIZE + 8];
    snprintf(weight, sizeof weight, "%.*sattention.self.key.weight", (int)(found - name), name);
    const struct stored_tensor *tensor = safetensors_find(golden->gradients, weight);
    assert_non_null(tensor);
    return norm(stored_tensor_as_floats(tensor), NULL, tensor->elements);
}

void golden_language_check_gradients(const struct golden_language *golden)
{
    const struct parameters *parameters = language_model_parameters(golden->model);
    assert_int_equal(parameters->item_count, safetensors_count(golden->gradients));
    for (size_t n = 0; n < parameters->item_count; n++) {
        const struct parameter *item = &parameters->items[n];
        const struct stored_tensor *tensor = safetensors_find(golden->gradients, item->name);
        if (!tensor)
            fail_msg("PyTorch has no parameter %s", item->name);
        assert_int_equal(tensor->elements, item->count);
        const float *expected = stored_tensor_as_floats(tensor);
        const double apart = norm(parameters->gradients + item->begin, expected, item->count);
        const double scale = scale_of(golden, item->name, expected, item->count);
        if (!(apart <= 1e-5 * scale))
            fail_msg("%s: the gradient is %g away from PyTorch's, whose norm is %g", item->name,
                     apart, scale);
    }
}
