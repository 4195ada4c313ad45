#include "model/bert_config.h"

#include <string.h>

#include "model/config_fields.h"

static bool read_sizes(struct bert_config *config, const json_t *object, struct attn_error *error)
{
    const struct config_size fields[] = {
        {"vocab_size", CONFIG_SIZE_LIMIT, &config->vocabulary},
        {"hidden_size", CONFIG_SIZE_LIMIT, &config->hidden},
        {"num_hidden_layers", CONFIG_LAYER_LIMIT, &config->layers},
        {"num_attention_heads", CONFIG_SIZE_LIMIT, &config->heads},
        {"intermediate_size", CONFIG_SIZE_LIMIT, &config->inner},
        {"max_position_embeddings", CONFIG_SIZE_LIMIT, &config->positions},
        {"type_vocab_size", CONFIG_SIZE_LIMIT, &config->types},
    };
    return config_sizes(object, fields, sizeof fields / sizeof fields[0], error) &&
           config_check_heads("num_attention_heads", config->heads, "hidden_size", config->hidden,
                              error);
}

/* What makes another model of the same tensors: it must not be computed as if it were not there. */
static bool refuse_other_models(const json_t *object, struct attn_error *error)
{
    static const char only_encoder[] = "only an encoder is supported";
    const char *positions;
    if (!config_expect_type(object, "bert", error) ||
        !config_text(object, "position_embedding_type", false, &positions, error))
        return false;
    if (positions && strcmp(positions, "absolute") != 0)
        return attn_error_set(error,
                              CONFIG_FILE_NAME ": position_embedding_type %.64s is not supported, "
                                               "only absolute is",
                              positions);
    return config_expect(object, "is_decoder", false, only_encoder, error) &&
           config_expect(object, "add_cross_attention", false, only_encoder, error);
}

static bool take_settings(void *user, const json_t *object, struct attn_error *error)
{
    struct bert_config *config = user;
    return refuse_other_models(object, error) && read_sizes(config, object, error) &&
           config_share(object, "layer_norm_eps", 1e-12, &config->norm_epsilon, error) &&
           config_share(object, "hidden_dropout_prob", 0.1, &config->dropout, error) &&
           config_activation(object, "hidden_act", NULL, &config->activation, error);
}

bool bert_config_read(struct bert_config *config, const char *directory, struct attn_error *error)
{
    *config = (struct bert_config){0};
    return config_read(directory, take_settings, config, error);
}

bool bert_config_write(const struct bert_config *config, int32_t pad_id, const char *directory,
                       struct attn_error *error)
{
    struct attn_buffer text = {0};
    attn_buffer_format(&text,
                       "{\n"
                       "  \"architectures\": [\"BertForMaskedLM\"],\n"
                       "  \"model_type\": \"bert\",\n"
                       "  \"vocab_size\": %lld,\n"
                       "  \"hidden_size\": %lld,\n"
                       "  \"num_hidden_layers\": %lld,\n"
                       "  \"num_attention_heads\": %lld,\n"
                       "  \"intermediate_size\": %lld,\n"
                       "  \"max_position_embeddings\": %lld,\n"
                       "  \"type_vocab_size\": %lld,\n"
                       "  \"hidden_act\": \"%s\",\n",
                       (long long)config->vocabulary, (long long)config->hidden,
                       (long long)config->layers, (long long)config->heads,
                       (long long)config->inner, (long long)config->positions,
                       (long long)config->types, config_activation_name(config->activation));
    config_add_float(&text, "layer_norm_eps", config->norm_epsilon);
    config_add_float(&text, "hidden_dropout_prob", config->dropout);
    config_add_float(&text, "attention_probs_dropout_prob", config->dropout);
    config_add_id(&text, "pad_token_id", pad_id);
    attn_buffer_add_text(&text, "  \"tie_word_embeddings\": true\n}\n");
    return config_write(directory, &text, error);
}
