#include "model/causal_model.h"

#include <stdlib.h>

#include "model/causal_parts.h"
#include "model/gpt2_config.h"

static bool read_gpt2(struct causal_configuration *configuration, const char *directory,
                      struct attn_error *error)
{
    struct gpt2_config config;
    if (!gpt2_config_read(&config, directory, error))
        return false;
    *configuration = (struct causal_configuration){
        .settings = {.kind = MODEL_GPT2,
                     .vocabulary = config.vocabulary,
                     .layers = config.layers,
                     .heads = config.heads,
                     .key_heads = config.heads,
                     .head_size = config.hidden / config.heads,
                     .width = config.hidden,
                     .inner = config.inner,
                     .context = config.positions},
        .norm_epsilon = config.norm_epsilon,
        .activation = config.activation,
        .attention_bias = true,
        .inner_bias = true,
    };
    return true;
}

static bool read_configuration(struct causal_configuration *configuration,
                               const struct model_source *source, struct attn_error *error)
{
    const struct gguf *gguf = model_source_gguf(source);
    const char *path = model_source_path(source);
    enum model_kind kind;
    if (!model_source_kind(source, &kind, error))
        return false;
    if (kind == MODEL_BERT)
        return attn_error_set(error,
                              "%s is a BERT, which reads words from both sides: only GPT-2 and "
                              "Llama tell the next one",
                              path);
    const bool read = gguf                 ? causal_read_gguf(configuration, gguf, kind, error)
                      : kind == MODEL_GPT2 ? read_gpt2(configuration, path, error)
                                           : causal_read_llama(configuration, path, error);
    if (read)
        causal_count_parameters(configuration);
    return read;
}

void causal_count_parameters(struct causal_configuration *configuration)
{
    struct causal_settings *settings = &configuration->settings;
    const bool gpt2 = settings->kind == MODEL_GPT2;
    const int64_t width = settings->width, inner = settings->inner;
    const int64_t queries = settings->heads * settings->head_size;
    const int64_t keys = settings->key_heads * settings->head_size;
    const int64_t norm = gpt2 ? 2 * width : width;
    const int64_t first = gpt2 ? inner : 2 * inner; /* the matrices up, or gate and up */
    int64_t layer = 2 * norm + width * (2 * queries + 2 * keys) + width * (first + inner);
    if (configuration->attention_bias)
        layer += queries + 2 * keys + width;
    if (configuration->inner_bias)
        layer += first + width;
    settings->parameters = settings->layers * layer + norm + settings->vocabulary * width;
}

bool causal_model_read_settings(struct causal_settings *settings, const struct model_source *source,
                                struct attn_error *error)
{
    struct causal_configuration configuration;
    if (!read_configuration(&configuration, source, error))
        return false;
    *settings = configuration.settings;
    return true;
}

static bool open_parts(struct causal_model *model, const struct model_source *source,
                       struct attn_error *error)
{
    const struct gguf *gguf = model_source_gguf(source);
    if (!read_configuration(&model->configuration, source, error))
        return false;
    model->kind = model->configuration.settings.kind == MODEL_GPT2 ? &causal_gpt2 : &causal_llama;
    return (gguf || checkpoint_open(&model->checkpoint, model_source_path(source), error)) &&
           causal_weights_bind(model, gguf, error);
}

bool causal_model_open(struct causal_model **model, const struct model_source *source,
                       struct attn_error *error)
{
    *model = NULL;
    struct causal_model *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    if (!open_parts(made, source, error)) {
        causal_model_close(made);
        return false;
    }
    *model = made;
    return true;
}

void causal_model_close(struct causal_model *model)
{
    if (!model)
        return;
    while (model->memory) {
        struct causal_memory *next = model->memory->next;
        free(model->memory);
        model->memory = next;
    }
    free(model->layers);
    checkpoint_close(model->checkpoint);
    free(model);
}

const struct causal_settings *causal_model_get_settings(const struct causal_model *model)
{
    return &model->configuration.settings;
}
