/* Models made from settings: the list of their parameters, and what these are before anything is
 * learned. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/splitmix.h"
#include "model/config_fields.h"
#include "model/language_parts.h"

/* Remembers where the values of the parameter that is added next will be wanted. */
static bool remember(struct language_declaration *declaration, const float **where,
                     enum language_start start)
{
    struct language_model *model = declaration->model;
    const size_t count = model->parameters.item_count;
    if (count == declaration->capacity) {
        size_t capacity = count > 0 ? 2 * count : 64;
        struct language_tensor *grown = realloc(model->tensors, capacity * sizeof *grown);
        if (!grown)
            return attn_error_memory(declaration->error);
        model->tensors = grown;
        declaration->capacity = capacity;
    }
    model->tensors[count] = (struct language_tensor){where, start};
    return true;
}

void language_declare(struct language_declaration *declaration, const float **where,
                      enum language_start start, int64_t rows, int64_t columns, const char *format,
                      ...)
{
    if (declaration->failed)
        return;
    char name[PARAMETER_NAME_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);

    const int64_t matrix[] = {rows, columns};
    int64_t begin;
    declaration->failed =
        !remember(declaration, where, start) ||
        !parameters_add(&declaration->model->parameters, name, rows == 0 ? 1 : 2,
                        rows == 0 ? &columns : matrix, &begin, declaration->error);
}

void language_declare_norm(struct language_declaration *declaration, struct layer_norm *norm,
                           const char *name)
{
    const struct language_model *model = declaration->model;
    norm->width = model->settings.width;
    norm->epsilon = model->details.norm_epsilon;
    language_declare(declaration, &norm->gain, START_ONE, 0, norm->width, "%s.weight", name);
    language_declare(declaration, &norm->shift, START_ZERO, 0, norm->width, "%s.bias", name);
}

void language_declare_linear(struct language_declaration *declaration, struct linear *linear,
                             enum language_start start, const char *name)
{
    const bool in_out = linear->layout == LINEAR_IN_OUT;
    language_declare(declaration, &linear->weight, start, in_out ? linear->in : linear->out,
                     in_out ? linear->out : linear->in, "%s.weight", name);
    language_declare(declaration, &linear->bias, START_ZERO, 0, linear->out, "%s.bias", name);
}

static bool check_settings(const struct language_model_settings *settings, struct attn_error *error)
{
    const struct {
        const char *name;
        int64_t value, limit;
    } sizes[] = {
        {"vocabulary", settings->vocabulary, CONFIG_SIZE_LIMIT},
        {"number of layers", settings->layers, CONFIG_LAYER_LIMIT},
        {"number of heads", settings->heads, CONFIG_SIZE_LIMIT},
        {"width", settings->width, CONFIG_SIZE_LIMIT},
        {"inner width", settings->inner, 4 * CONFIG_SIZE_LIMIT},
        {"context", settings->context, CONFIG_SIZE_LIMIT},
    };
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++)
        if (sizes[n].value < 1 || sizes[n].value > sizes[n].limit)
            return attn_error_set(error, "the model's %s is %lld, but must be in 1..%lld",
                                  sizes[n].name, (long long)sizes[n].value,
                                  (long long)sizes[n].limit);
    if (settings->width % settings->heads != 0)
        return attn_error_set(error, "%lld heads do not divide a width of %lld",
                              (long long)settings->heads, (long long)settings->width);
    if (!(settings->dropout >= 0.0f && settings->dropout < 1.0f))
        return attn_error_set(error,
                              "the model's dropout is %g, but must be at least 0 and below 1",
                              (double)settings->dropout);
    return true;
}

/* All views of the values, which stay where they are until the model is closed. */
static void connect(struct language_model *model)
{
    for (size_t n = 0; n < model->parameters.item_count; n++)
        *model->tensors[n].where = model->parameters.values + model->parameters.items[n].begin;
    if (model->kind->connect)
        model->kind->connect(model);
}

bool language_model_allocate(struct language_model *model, struct attn_error *error)
{
    if (!parameters_allocate(&model->parameters, error))
        return false;
    connect(model);
    return true;
}

static bool make(struct language_model *model, struct attn_error *error)
{
    model->layers = calloc((size_t)model->settings.layers, sizeof *model->layers);
    if (!model->layers)
        return attn_error_memory(error);
    struct language_declaration declaration = {.model = model, .error = error};
    model->kind->declare(&declaration);
    return !declaration.failed;
}

bool language_model_make(struct language_model **model,
                         const struct language_model_settings *settings,
                         const struct language_details *details, struct attn_error *error)
{
    *model = NULL;
    struct language_model_settings checked = *settings;
    if (checked.inner == 0 && checked.width <= CONFIG_SIZE_LIMIT)
        checked.inner = 4 * checked.width;
    if (!check_settings(&checked, error))
        return false;
    struct language_model *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    made->settings = checked;
    made->kind = settings->kind == LANGUAGE_MODEL_GPT2 ? &language_kind_gpt2 : &language_kind_bert;
    made->details = details ? *details : made->kind->details;
    if (!make(made, error)) {
        language_model_close(made);
        return false;
    }
    *model = made;
    return true;
}

/* 64 random bits: the n-th of a stream. */
static uint64_t random_bits(uint64_t stream, uint64_t n)
{
    return attn_splitmix(stream + (n + 1) * ATTN_SPLITMIX_STEP);
}

/* In (0, 1]. */
static double random_share(uint64_t stream, uint64_t n)
{
    return (double)((random_bits(stream, n) >> 11) + 1) * 0x1p-53;
}

/* Normal numbers in pairs (G. Box, M. Muller, 1958). */
static void fill_normal(float *values, int64_t count, double deviation, uint64_t stream)
{
    for (int64_t i = 0; i < count; i += 2) {
        double radius = deviation * sqrt(-2.0 * log(random_share(stream, (uint64_t)i)));
        double angle = 6.283185307179586 * random_share(stream, (uint64_t)i + 1);
        values[i] = (float)(radius * cos(angle));
        if (i + 1 < count)
            values[i + 1] = (float)(radius * sin(angle));
    }
}

void language_start_parameter(struct language_model *model, size_t item, uint64_t seed)
{
    const struct parameter *parameter = &model->parameters.items[item];
    float *values = model->parameters.values + parameter->begin;
    const enum language_start start = model->tensors[item].start;
    const double deviation = 0.02;
    const double residual = deviation / sqrt(2.0 * (double)model->settings.layers);
    switch (start) {
    case START_ZERO:
    case START_ONE:
        for (int64_t i = 0; i < parameter->count; i++)
            values[i] = start == START_ONE ? 1.0f : 0.0f;
        break;
    case START_NORMAL:
    case START_RESIDUAL:
        fill_normal(values, parameter->count, start == START_NORMAL ? deviation : residual,
                    random_bits(seed, item));
        break;
    }
}

bool language_model_create(struct language_model **model,
                           const struct language_model_settings *settings, uint64_t seed,
                           struct attn_error *error)
{
    if (!language_model_make(model, settings, NULL, error))
        return false;
    if (!language_model_allocate(*model, error)) {
        language_model_close(*model);
        *model = NULL;
        return false;
    }
    for (size_t item = 0; item < (*model)->parameters.item_count; item++)
        language_start_parameter(*model, item, seed);
    return true;
}

void language_model_close(struct language_model *model)
{
    if (!model)
        return;
    language_memory_release(&model->memory);
    parameters_release(&model->parameters);
    free(model->tensors);
    free(model->layers);
    free(model);
}
