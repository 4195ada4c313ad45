/* A language model from a Hugging Face directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/bert_config.h"
#include "model/config_fields.h"
#include "model/gpt2_config.h"
#include "model/language_parts.h"
#include "model/tensor_search.h"

struct opening {
    struct language_model *model;
    struct tensor_search search, head_search; /* names of BERT's head have no prefix */
    bool needs_head;                          /* a BERT without one does not get a new one */
    struct attn_error *error;
};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The older name of a BERT norm's parameter, LayerNorm.gamma and LayerNorm.beta; NULL for others.
 */
static const char *older_name(const char *name, char older[PARAMETER_NAME_SIZE])
{
    static const char norm[] = "LayerNorm.";
    const char *found = strstr(name, norm);
    if (!found)
        return NULL;
    const int size = (int)(found - name) + (int)strlen(norm);
    snprintf(older, PARAMETER_NAME_SIZE, "%.*s%s", size, name,
             strcmp(name + size, "weight") == 0 ? "gamma" : "beta");
    return older;
}

static bool is_head(const struct parameter *parameter)
{
    return begins_with(parameter->name, BERT_HEAD);
}

/* The tensor that a parameter is read from, its shape checked. */
static bool find_tensor(const struct opening *opening, const struct parameter *parameter,
                        const struct stored_tensor **tensor)
{
    const struct tensor_search *search =
        is_head(parameter) ? &opening->head_search : &opening->search;
    const char *name =
        parameter->name + (is_head(parameter) ? 0 : strlen(opening->model->kind->prefix));
    const bool matrix = parameter->rank == 2;
    char older[PARAMETER_NAME_SIZE];
    return tensor_search_find(search, name, older_name(name, older),
                              matrix ? parameter->shape[0] : 0, parameter->shape[matrix ? 1 : 0],
                              tensor, opening->error);
}

/* The file has a part of BERT's masked-word head, and so should have all of it. */
static bool has_head(const struct opening *opening)
{
    const struct checkpoint *checkpoint = opening->search.checkpoint;
    for (size_t n = 0; n < checkpoint_count(checkpoint); n++)
        if (begins_with(checkpoint_at(checkpoint, n)->name, BERT_HEAD))
            return true;
    return false;
}

/* Some files hold twice what the model has once: then both must be the same. */
static bool check_tied(const struct opening *opening, const char *name, const char *twin,
                       int64_t rows, int64_t columns, const float *values)
{
    const struct stored_tensor *tensor;
    if (!tensor_search_has(&opening->head_search, name))
        return true;
    if (!tensor_search_find(&opening->head_search, name, NULL, rows, columns, &tensor,
                            opening->error))
        return false;
    float *numbers = malloc((size_t)tensor->elements * sizeof *numbers);
    if (!numbers)
        return attn_error_memory(opening->error);
    bool done = stored_tensor_to_floats(tensor, numbers, opening->error);
    if (done && memcmp(numbers, values, (size_t)tensor->elements * sizeof *numbers) != 0)
        done = attn_error_set(opening->error,
                              "%s: %s is not the same as %s: a head of its own is not supported",
                              checkpoint_path(opening->search.checkpoint), name, twin);
    free(numbers);
    return done;
}

static bool check_heads(const struct opening *opening)
{
    const struct language_model *model = opening->model;
    const int64_t words = model->settings.vocabulary, width = model->settings.width;
    if (model->settings.kind == LANGUAGE_MODEL_GPT2)
        return check_tied(opening, "lm_head.weight", "wte.weight", words, width, model->words);
    return check_tied(opening, BERT_HEAD "decoder.weight", "embeddings.word_embeddings.weight",
                      words, width, model->words) &&
           check_tied(opening, BERT_HEAD "decoder.bias", BERT_HEAD "bias", 0, words,
                      model->head.bias);
}

/* Memory is asked for when it is known that the file has what fills it. */
static bool read_parameters(struct opening *opening, uint64_t seed)
{
    struct language_model *model = opening->model;
    const struct parameters *parameters = &model->parameters;
    const bool new_head = model->settings.kind == LANGUAGE_MODEL_BERT && !has_head(opening);
    const struct stored_tensor *tensor;
    if (new_head && opening->needs_head)
        return attn_error_set(opening->error,
                              "%s: the model has no masked-word head (" BERT_HEAD
                              "…): 'attn train --objective mlm' makes a model that has one, and "
                              "with -m teaches it to this one",
                              checkpoint_path(opening->search.checkpoint));
    for (size_t n = 0; n < parameters->item_count; n++)
        if (!(new_head && is_head(&parameters->items[n])) &&
            !find_tensor(opening, &parameters->items[n], &tensor))
            return false;
    if (!language_model_allocate(model, opening->error))
        return false;
    for (size_t n = 0; n < parameters->item_count; n++) {
        const struct parameter *item = &parameters->items[n];
        if (new_head && is_head(item))
            language_start_parameter(model, n, seed);
        else if (!find_tensor(opening, item, &tensor) ||
                 !stored_tensor_to_floats(tensor, parameters->values + item->begin, opening->error))
            return false;
    }
    return check_heads(opening);
}

struct configuration {
    struct language_model_settings settings;
    struct language_details details;
};

static bool read_gpt2(struct configuration *configuration, const char *directory,
                      struct attn_error *error)
{
    struct gpt2_config config;
    if (!gpt2_config_read(&config, directory, error))
        return false;
    *configuration = (struct configuration){
        .settings = {.kind = LANGUAGE_MODEL_GPT2,
                     .vocabulary = config.vocabulary,
                     .layers = config.layers,
                     .heads = config.heads,
                     .width = config.hidden,
                     .inner = config.inner,
                     .context = config.positions,
                     .dropout = config.dropout},
        .details = {.activation = config.activation, .norm_epsilon = config.norm_epsilon},
    };
    return true;
}

static bool read_bert(struct configuration *configuration, const char *directory,
                      struct attn_error *error)
{
    struct bert_config config;
    if (!bert_config_read(&config, directory, error))
        return false;
    *configuration = (struct configuration){
        .settings = {.kind = LANGUAGE_MODEL_BERT,
                     .vocabulary = config.vocabulary,
                     .layers = config.layers,
                     .heads = config.heads,
                     .width = config.hidden,
                     .inner = config.inner,
                     .context = config.positions,
                     .dropout = config.dropout},
        .details = {.activation = config.activation,
                    .norm_epsilon = config.norm_epsilon,
                    .types = config.types},
    };
    return true;
}

static bool take_kind(void *user, const json_t *object, struct attn_error *error)
{
    enum language_model_kind *kind = user;
    const char *type;
    if (!config_text(object, "model_type", true, &type, error))
        return false;
    if (strcmp(type, "gpt2") == 0)
        *kind = LANGUAGE_MODEL_GPT2;
    else if (strcmp(type, "bert") == 0)
        *kind = LANGUAGE_MODEL_BERT;
    else
        return attn_error_set(error,
                              CONFIG_FILE_NAME ": model_type %.64s is not supported, only bert and "
                                               "gpt2 are",
                              type);
    return true;
}

static bool read_configuration(struct configuration *configuration, const char *directory,
                               struct attn_error *error)
{
    enum language_model_kind kind;
    if (!config_read(directory, take_kind, &kind, error))
        return false;
    return kind == LANGUAGE_MODEL_GPT2 ? read_gpt2(configuration, directory, error)
                                       : read_bert(configuration, directory, error);
}

static bool open_directory(struct language_model **model, const char *directory, bool needs_head,
                           uint64_t seed, struct attn_error *error)
{
    *model = NULL;
    struct configuration configuration;
    struct checkpoint *checkpoint;
    if (!read_configuration(&configuration, directory, error) ||
        !checkpoint_open(&checkpoint, directory, error))
        return false;
    struct opening opening = {.error = error, .needs_head = needs_head};
    bool done =
        language_model_make(&opening.model, &configuration.settings, &configuration.details, error);
    if (done) {
        opening.search = tensor_search_start(checkpoint, opening.model->kind->prefix);
        opening.head_search = (struct tensor_search){checkpoint, ""};
        done = read_parameters(&opening, seed);
    }
    checkpoint_close(checkpoint);
    if (!done) {
        language_model_close(opening.model);
        return false;
    }
    *model = opening.model;
    return true;
}

bool language_model_open(struct language_model **model, const char *directory, uint64_t seed,
                         struct attn_error *error)
{
    return open_directory(model, directory, false, seed, error);
}

bool language_model_open_with_head(struct language_model **model, const char *directory,
                                   struct attn_error *error)
{
    return open_directory(model, directory, true, 0, error);
}
