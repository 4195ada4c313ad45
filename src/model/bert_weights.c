#include "model/bert_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "bert."

enum { NAME_SIZE = 128 }; /* the longest name below is about 60 bytes */

/* One tensor in floats, in a list. */
struct converted {
    struct converted *next;
    float numbers[];
};

/* What every search below needs. */
struct binding {
    const struct checkpoint *checkpoint;
    struct bert_weights *weights;
    const char *prefix; /* "bert." where the file uses it, else "" */
    struct attn_error *error;
};

static const char *prefix_of(const struct checkpoint *checkpoint)
{
    for (size_t n = 0; n < checkpoint_count(checkpoint); n++)
        if (strncmp(checkpoint_at(checkpoint, n)->name, PREFIX, strlen(PREFIX)) == 0)
            return PREFIX;
    return "";
}

/* Its numbers where they are, or a copy that the weights own. */
static const float *numbers_of(struct binding *binding, const struct stored_tensor *tensor)
{
    const float *in_place = stored_tensor_as_floats(tensor);
    if (in_place)
        return in_place;

    struct converted *copy = NULL;
    if ((uint64_t)tensor->elements <= (SIZE_MAX - sizeof *copy) / sizeof copy->numbers[0])
        copy = malloc(sizeof *copy + (size_t)tensor->elements * sizeof copy->numbers[0]);
    if (!copy) {
        attn_error_memory(binding->error);
        return NULL;
    }
    if (!stored_tensor_to_floats(tensor, copy->numbers, binding->error)) {
        free(copy);
        return NULL;
    }
    copy->next = binding->weights->converted;
    binding->weights->converted = copy;
    return copy->numbers;
}

/* The matrix [rows][columns], or with rows = 0 the vector [columns]. */
static bool check_shape(const struct binding *binding, const struct stored_tensor *tensor,
                        int64_t rows, int64_t columns)
{
    if (rows == 0 ? tensor->rank == 1 && tensor->shape[0] == columns
                  : tensor->rank == 2 && tensor->shape[0] == rows && tensor->shape[1] == columns)
        return true;

    char found[64], expected[64];
    stored_tensor_shape_text(tensor, found, sizeof found);
    if (rows == 0)
        snprintf(expected, sizeof expected, "[%lld]", (long long)columns);
    else
        snprintf(expected, sizeof expected, "[%lld, %lld]", (long long)rows, (long long)columns);
    return attn_error_set(binding->error, "%s: %s has shape %s, expected %s",
                          checkpoint_path(binding->checkpoint), tensor->name, found, expected);
}

/* PREFIX + module + "." + parameter, or the parameter's older name where the file has that one. */
static bool find(struct binding *binding, const char *module, const char *parameter,
                 const char *older, int64_t rows, int64_t columns, const float **numbers)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s%s.%s", binding->prefix, module, parameter);
    const struct stored_tensor *tensor = checkpoint_find(binding->checkpoint, name);
    if (!tensor && older) {
        char older_name[NAME_SIZE];
        snprintf(older_name, sizeof older_name, "%s%s.%s", binding->prefix, module, older);
        tensor = checkpoint_find(binding->checkpoint, older_name);
    }
    if (!tensor)
        return attn_error_set(binding->error, "%s: the file has no tensor %s",
                              checkpoint_path(binding->checkpoint), name);
    if (!check_shape(binding, tensor, rows, columns))
        return false;
    *numbers = numbers_of(binding, tensor);
    return *numbers != NULL;
}

static bool find_table(struct binding *binding, const char *module, int64_t rows, int64_t hidden,
                       const float **table)
{
    return find(binding, module, "weight", NULL, rows, hidden, table);
}

static bool find_linear(struct binding *binding, const char *module, int64_t in, int64_t out,
                        struct linear *linear)
{
    *linear = (struct linear){.in = in, .out = out};
    return find(binding, module, "weight", NULL, out, in, &linear->weight) &&
           find(binding, module, "bias", NULL, 0, out, &linear->bias);
}

static bool find_norm(struct binding *binding, const char *module, const struct bert_config *config,
                      struct layer_norm *norm)
{
    *norm = (struct layer_norm){.width = config->hidden, .epsilon = config->norm_epsilon};
    return find(binding, module, "weight", "gamma", 0, config->hidden, &norm->gain) &&
           find(binding, module, "bias", "beta", 0, config->hidden, &norm->shift);
}

/* "encoder.layer.3.output.dense" for layer 3 and part "output.dense". */
static const char *layer_module(char module[NAME_SIZE], int64_t layer, const char *part)
{
    snprintf(module, NAME_SIZE, "encoder.layer.%lld.%s", (long long)layer, part);
    return module;
}

static bool find_layer(struct binding *binding, int64_t n, const struct bert_config *config,
                       struct bert_layer *layer)
{
    const int64_t hidden = config->hidden, inner = config->inner;
    struct self_attention *attention = &layer->attention;
    attention->heads = config->heads;

    char module[NAME_SIZE];
    return find_linear(binding, layer_module(module, n, "attention.self.query"), hidden, hidden,
                       &attention->query) &&
           find_linear(binding, layer_module(module, n, "attention.self.key"), hidden, hidden,
                       &attention->key) &&
           find_linear(binding, layer_module(module, n, "attention.self.value"), hidden, hidden,
                       &attention->value) &&
           find_linear(binding, layer_module(module, n, "attention.output.dense"), hidden, hidden,
                       &attention->output) &&
           find_norm(binding, layer_module(module, n, "attention.output.LayerNorm"), config,
                     &layer->attention_norm) &&
           find_linear(binding, layer_module(module, n, "intermediate.dense"), hidden, inner,
                       &layer->intermediate) &&
           find_linear(binding, layer_module(module, n, "output.dense"), inner, hidden,
                       &layer->output) &&
           find_norm(binding, layer_module(module, n, "output.LayerNorm"), config,
                     &layer->output_norm);
}

static bool find_all(struct binding *binding, const struct bert_config *config)
{
    struct bert_weights *weights = binding->weights;
    const int64_t hidden = config->hidden;
    if (!find_table(binding, "embeddings.word_embeddings", config->vocabulary, hidden,
                    &weights->words) ||
        !find_table(binding, "embeddings.position_embeddings", config->positions, hidden,
                    &weights->positions) ||
        !find_table(binding, "embeddings.token_type_embeddings", config->types, hidden,
                    &weights->types) ||
        !find_norm(binding, "embeddings.LayerNorm", config, &weights->embedding_norm))
        return false;

    weights->layers = calloc((size_t)config->layers, sizeof *weights->layers);
    if (!weights->layers)
        return attn_error_memory(binding->error);
    for (int64_t n = 0; n < config->layers; n++)
        if (!find_layer(binding, n, config, &weights->layers[n]))
            return false;
    return true;
}

bool bert_weights_bind(struct bert_weights *weights, const struct bert_config *config,
                       const struct checkpoint *checkpoint, struct attn_error *error)
{
    *weights = (struct bert_weights){0};
    struct binding binding = {checkpoint, weights, prefix_of(checkpoint), error};
    if (find_all(&binding, config))
        return true;
    bert_weights_release(weights);
    return false;
}

void bert_weights_release(struct bert_weights *weights)
{
    free(weights->layers);
    while (weights->converted) {
        struct converted *next = weights->converted->next;
        free(weights->converted);
        weights->converted = next;
    }
    *weights = (struct bert_weights){0};
}
