#include "model/bert_weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/tensor_search.h"

enum { NAME_SIZE = 128 }; /* the longest name below is about 60 bytes */

/* One tensor in floats, in a list. */
struct converted {
    struct converted *next;
    float numbers[];
};

/* What every search below needs. */
struct binding {
    struct tensor_search search;
    struct bert_weights *weights;
    struct attn_error *error;
};

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

/* module + "." + parameter, or the parameter's older name where the file has that one. */
static bool find(struct binding *binding, const char *module, const char *parameter,
                 const char *older, int64_t rows, int64_t columns, const float **numbers)
{
    char name[NAME_SIZE], older_name[NAME_SIZE];
    snprintf(name, sizeof name, "%s.%s", module, parameter);
    snprintf(older_name, sizeof older_name, "%s.%s", module, older ? older : parameter);
    const struct stored_tensor *tensor;
    if (!tensor_search_find(&binding->search, name, older_name, rows, columns, &tensor,
                            binding->error))
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
    struct binding binding = {tensor_search_start(checkpoint, "bert."), weights, error};
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
