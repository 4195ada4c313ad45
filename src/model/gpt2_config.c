#include "model/gpt2_config.h"

#include "base/json_file.h"
#include "model/config_fields.h"

static bool read_sizes(struct gpt2_config *config, const json_t *object, struct attn_error *error)
{
    const struct config_size fields[] = {
        {"vocab_size", CONFIG_SIZE_LIMIT, &config->vocabulary},
        {"n_embd", CONFIG_SIZE_LIMIT, &config->hidden},
        {"n_layer", CONFIG_LAYER_LIMIT, &config->layers},
        {"n_head", CONFIG_SIZE_LIMIT, &config->heads},
        {"n_positions", CONFIG_SIZE_LIMIT, &config->positions},
    };
    if (!config_sizes(object, fields, sizeof fields / sizeof fields[0], error) ||
        !config_check_heads("n_head", config->heads, "n_embd", config->hidden, error))
        return false;
    const long long wide = 4 * config->hidden;
    long long inner;
    if (!attn_json_integer(object, CONFIG_FILE_NAME, "n_inner", 1, 4 * CONFIG_SIZE_LIMIT, &wide,
                           &inner, error))
        return false;
    config->inner = inner;
    return true;
}

/* What makes another model of the same tensors. */
static bool refuse_other_models(const json_t *object, struct attn_error *error)
{
    static const char not_supported[] = "this is not supported";
    return config_expect_type(object, "gpt2", error) &&
           config_expect(object, "scale_attn_weights", true, not_supported, error) &&
           config_expect(object, "scale_attn_by_inverse_layer_idx", false, not_supported, error) &&
           config_expect(object, "reorder_and_upcast_attn", false, not_supported, error) &&
           config_expect(object, "add_cross_attention", false, not_supported, error) &&
           config_expect(object, "tie_word_embeddings", true, not_supported, error);
}

static bool take_settings(void *user, const json_t *object, struct attn_error *error)
{
    struct gpt2_config *config = user;
    return refuse_other_models(object, error) && read_sizes(config, object, error) &&
           config_share(object, "layer_norm_epsilon", 1e-5, &config->norm_epsilon, error) &&
           config_share(object, "resid_pdrop", 0.1, &config->dropout, error) &&
           config_activation(object, "activation_function", "gelu_new", &config->activation, error);
}

bool gpt2_config_read(struct gpt2_config *config, const char *directory, struct attn_error *error)
{
    *config = (struct gpt2_config){0};
    return config_read(directory, take_settings, config, error);
}

bool gpt2_config_write(const struct gpt2_config *config, int32_t end_id, const char *directory,
                       struct attn_error *error)
{
    struct attn_buffer text = {0};
    attn_buffer_format(&text,
                       "{\n"
                       "  \"architectures\": [\"GPT2LMHeadModel\"],\n"
                       "  \"model_type\": \"gpt2\",\n"
                       "  \"vocab_size\": %lld,\n"
                       "  \"n_embd\": %lld,\n"
                       "  \"n_layer\": %lld,\n"
                       "  \"n_head\": %lld,\n"
                       "  \"n_inner\": %lld,\n"
                       "  \"n_positions\": %lld,\n"
                       "  \"activation_function\": \"%s\",\n",
                       (long long)config->vocabulary, (long long)config->hidden,
                       (long long)config->layers, (long long)config->heads,
                       (long long)config->inner, (long long)config->positions,
                       config_activation_name(config->activation));
    config_add_float(&text, "layer_norm_epsilon", config->norm_epsilon);
    config_add_float(&text, "embd_pdrop", config->dropout);
    config_add_float(&text, "attn_pdrop", config->dropout);
    config_add_float(&text, "resid_pdrop", config->dropout);
    config_add_id(&text, "bos_token_id", end_id);
    config_add_id(&text, "eos_token_id", end_id);
    attn_buffer_add_text(&text, "  \"tie_word_embeddings\": true\n}\n");
    return config_write(directory, &text, error);
}
