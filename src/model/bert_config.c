#include "model/bert_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"

#define FILE_NAME "config.json"

enum {
    CONFIG_LIMIT =
        1 << 24, /* bytes; label lists make some of these files long, but not that long */
    LAYER_LIMIT = 1000,
    SIZE_LIMIT = 1000000 /* beyond any model, and a product of three of them fits 64 bits */
};

/* The text of a field, NULL when it is absent or null and not required. */
static bool read_text(const json_t *object, const char *name, bool required, const char **text,
                      struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    *text = json_string_value(field);
    if (*text)
        return true;
    if (!field && required)
        return attn_error_set(error, FILE_NAME " has no %s", name);
    if (required || (field && !json_is_null(field)))
        return attn_error_set(error, FILE_NAME ": %s is not a string", name);
    return true;
}

static bool read_sizes(struct bert_config *config, const json_t *object, struct attn_error *error)
{
    const struct {
        const char *name;
        long long limit;
        int64_t *size;
    } fields[] = {
        {"vocab_size", SIZE_LIMIT, &config->vocabulary},
        {"hidden_size", SIZE_LIMIT, &config->hidden},
        {"num_hidden_layers", LAYER_LIMIT, &config->layers},
        {"num_attention_heads", SIZE_LIMIT, &config->heads},
        {"intermediate_size", SIZE_LIMIT, &config->inner},
        {"max_position_embeddings", SIZE_LIMIT, &config->positions},
        {"type_vocab_size", SIZE_LIMIT, &config->types},
    };
    for (size_t n = 0; n < sizeof fields / sizeof fields[0]; n++) {
        long long value;
        if (!attn_json_integer(object, FILE_NAME, fields[n].name, 1, fields[n].limit, NULL, &value,
                               error))
            return false;
        *fields[n].size = value;
    }
    if (config->hidden % config->heads != 0)
        return attn_error_set(error,
                              FILE_NAME ": num_attention_heads %lld does not divide hidden_size "
                                        "%lld",
                              (long long)config->heads, (long long)config->hidden);
    return true;
}

static bool read_epsilon(struct bert_config *config, const json_t *object, struct attn_error *error)
{
    const json_t *field = json_object_get(object, "layer_norm_eps");
    double epsilon = 1e-12;
    if (field && !json_is_null(field)) {
        epsilon = json_is_number(field) ? json_number_value(field) : NAN;
        if (!(epsilon >= 0.0 && epsilon <= 1.0))
            return attn_error_set(error,
                                  FILE_NAME ": layer_norm_eps is not a number between 0 and 1");
    }
    config->norm_epsilon = (float)epsilon;
    return true;
}

static bool read_activation(struct bert_config *config, const json_t *object,
                            struct attn_error *error)
{
    const char *name;
    if (!read_text(object, "hidden_act", true, &name, error))
        return false;
    if (!activation_from_name(name, &config->activation))
        return attn_error_set(error, FILE_NAME ": hidden_act %.64s is not known", name);
    return true;
}

/* What makes another model of the same tensors: it must not be computed as if it were not there. */
static bool refuse_other_models(const json_t *object, struct attn_error *error)
{
    const char *type, *positions;
    if (!read_text(object, "model_type", true, &type, error))
        return false;
    if (strcmp(type, "bert") != 0)
        return attn_error_set(error, FILE_NAME ": model_type %.64s is not supported, only bert is",
                              type);

    if (!read_text(object, "position_embedding_type", false, &positions, error))
        return false;
    if (positions && strcmp(positions, "absolute") != 0)
        return attn_error_set(error,
                              FILE_NAME ": position_embedding_type %.64s is not supported, only "
                                        "absolute is",
                              positions);

    static const char *const decoders[] = {"is_decoder", "add_cross_attention"};
    for (size_t n = 0; n < sizeof decoders / sizeof decoders[0]; n++) {
        const json_t *field = json_object_get(object, decoders[n]);
        if (field && !json_is_false(field) && !json_is_null(field))
            return attn_error_set(
                error, FILE_NAME ": %s is not false: only an encoder is supported", decoders[n]);
    }
    return true;
}

static bool read_settings(struct bert_config *config, const json_t *object,
                          struct attn_error *error)
{
    return refuse_other_models(object, error) && read_sizes(config, object, error) &&
           read_epsilon(config, object, error) && read_activation(config, object, error);
}

bool bert_config_read(struct bert_config *config, const char *directory, struct attn_error *error)
{
    *config = (struct bert_config){0};
    char *path = attn_path_join(directory, FILE_NAME);
    if (!path)
        return attn_error_memory(error);
    json_t *object = NULL;
    bool done = attn_json_read_object(path, CONFIG_LIMIT, &object, error);
    struct attn_error fault;
    if (done && !read_settings(config, object, &fault))
        done = attn_error_set(error, "%s/%s", directory, fault.message);
    json_decref(object);
    free(path);
    return done;
}
