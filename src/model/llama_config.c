/* The settings of a Llama: config.json of a Hugging Face directory. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/json_file.h"
#include "model/causal_parts.h"
#include "model/config_fields.h"

/* Fields that change no number that a trained model gives, or that are read below. What is not here
 * makes another model, as far as is known, and is refused. */
static const char *const known_fields[] = {
    /* read */
    "attention_bias",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "mlp_bias",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "partial_rotary_factor",
    "pretraining_tp",
    "rms_norm_eps",
    "rope_interleaved",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "tie_word_embeddings",
    "vocab_size",
    /* where it comes from, how it is kept and run */
    "_name_or_path",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "architectures",
    "attn_implementation",
    "dtype",
    "is_llama_config",
    "name_or_path",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "use_bfloat16",
    "return_dict",
    "chunk_size_feed_forward",
    "max_sequence_length",
    /* training */
    "attention_dropout",
    "hidden_dropout",
    "initializer_range",
    "resid_pdrop",
    "embd_pdrop",
    /* the tokenizer, and how text is written */
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "decoder_start_token_id",
    "task_specific_params",
    "tokenizer_class",
    "prefix",
    "max_length",
    "min_length",
    "max_window_layers",
    "temperature",
    "top_k",
    "top_p",
    "do_sample",
    "num_beams",
    "repetition_penalty",
    "length_penalty",
    "typical_p",
    "num_return_sequences",
    "num_beam_groups",
    "diversity_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    /* heads that are no part of the model that tells the next word */
    "classifier_dropout",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
};

static bool is_known(const char *name)
{
    for (size_t n = 0; n < sizeof known_fields / sizeof known_fields[0]; n++)
        if (strcmp(name, known_fields[n]) == 0)
            return true;
    return false;
}

/* What is switched off or empty says nothing. */
static bool says_nothing(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool refuse_unknown(const json_t *object, struct attn_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, name, value)
        if (!is_known(name) && !says_nothing(value))
            return attn_error_set(error, CONFIG_FILE_NAME ": %.64s is not supported for a Llama",
                                  name);
    return true;
}

/* A number > 0, `fallback` where it is absent or null. */
static bool read_positive(const json_t *object, const char *name, double fallback, double *number,
                          struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    *number = fallback;
    if (!field || json_is_null(field))
        return true;
    *number = json_is_number(field) ? json_number_value(field) : NAN;
    return (*number >= (double)FLT_MIN && *number <= (double)FLT_MAX) ||
           attn_error_set(error, CONFIG_FILE_NAME ": %s is not a number above 0", name);
}

static bool expect_one(const json_t *object, const char *name, struct attn_error *error)
{
    double number;
    return read_positive(object, name, 1.0, &number, error) &&
           (number == 1.0 ||
            attn_error_set(error, CONFIG_FILE_NAME ": %s is %g, which is not supported, only 1 is",
                           name, number));
}

/* rope_scaling, or rope_parameters of newer files: neither may change the angles, but for theta. */
static bool check_rope_object(const json_t *object, const char *name, struct attn_error *error)
{
    const json_t *rope = json_object_get(object, name);
    if (!rope || json_is_null(rope))
        return true;
    if (!json_is_object(rope))
        return attn_error_set(error, CONFIG_FILE_NAME ": %s is not an object", name);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)rope, key, value) {
        const char *text = json_string_value(value);
        if (strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0) {
            if (!text || strcmp(text, "default") != 0)
                return attn_error_set(error, CONFIG_FILE_NAME ": %s of type %.32s is not supported",
                                      name, text ? text : "(not a string)");
        } else if (strcmp(key, "rope_theta") != 0 && strcmp(key, "partial_rotary_factor") != 0) {
            return attn_error_set(error, CONFIG_FILE_NAME ": %s has %.64s, which is not supported",
                                  name, key);
        }
    }
    return expect_one(rope, "partial_rotary_factor", error);
}

static bool read_rope(struct causal_configuration *configuration, const json_t *object,
                      struct attn_error *error)
{
    const json_t *parameters = json_object_get(object, "rope_parameters");
    double theta;
    if (!check_rope_object(object, "rope_scaling", error) ||
        !check_rope_object(object, "rope_parameters", error) ||
        !expect_one(object, "partial_rotary_factor", error) ||
        !config_expect(object, "rope_interleaved", false, "this is not supported", error) ||
        !read_positive(object, "rope_theta", 10000.0, &theta, error) ||
        (json_is_object(parameters) &&
         !read_positive(parameters, "rope_theta", theta, &theta, error)))
        return false;
    const int64_t d = configuration->settings.head_size;
    if (d % 2 != 0)
        return attn_error_set(error, CONFIG_FILE_NAME ": a head of %lld numbers has no pairs",
                              (long long)d);
    configuration->rope = (struct rope){ROPE_HALVES, d, (float)theta};
    return true;
}

static bool read_heads(struct causal_settings *settings, const json_t *object,
                       struct attn_error *error)
{
    const long long heads = settings->heads, width = settings->width;
    long long key_heads, head_size = width / heads;
    const json_t *given = json_object_get(object, "head_dim");
    if (!attn_json_integer(object, CONFIG_FILE_NAME, "num_key_value_heads", 1, CONFIG_SIZE_LIMIT,
                           &heads, &key_heads, error))
        return false;
    if (given && !json_is_null(given)) {
        if (!attn_json_integer(object, CONFIG_FILE_NAME, "head_dim", 1, CONFIG_SIZE_LIMIT / heads,
                               NULL, &head_size, error))
            return false;
    } else if (!config_check_heads("num_attention_heads", heads, "hidden_size", width, error)) {
        return false;
    }
    settings->key_heads = key_heads;
    settings->head_size = head_size;
    return config_check_heads("num_key_value_heads", key_heads, "num_attention_heads", heads,
                              error);
}

static bool read_sizes(struct causal_settings *settings, const json_t *object,
                       struct attn_error *error)
{
    const struct config_size fields[] = {
        {"vocab_size", CONFIG_SIZE_LIMIT, &settings->vocabulary},
        {"hidden_size", CONFIG_SIZE_LIMIT, &settings->width},
        {"num_hidden_layers", CONFIG_LAYER_LIMIT, &settings->layers},
        {"num_attention_heads", CONFIG_SIZE_LIMIT, &settings->heads},
        {"intermediate_size", CONFIG_SIZE_LIMIT, &settings->inner},
        {"max_position_embeddings", INT32_MAX, &settings->context},
    };
    return config_sizes(object, fields, sizeof fields / sizeof fields[0], error) &&
           read_heads(settings, object, error);
}

static bool read_switch(const json_t *object, const char *name, bool fallback, bool *value,
                        struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    *value = fallback;
    if (!field || json_is_null(field))
        return true;
    *value = json_is_true(field);
    return json_is_boolean(field) ||
           attn_error_set(error, CONFIG_FILE_NAME ": %s is neither true nor false", name);
}

static bool check_activation(const json_t *object, struct attn_error *error)
{
    enum activation activation;
    const char *name;
    if (!config_activation(object, "hidden_act", "silu", &activation, error) ||
        !config_text(object, "hidden_act", false, &name, error))
        return false;
    return activation == ACTIVATION_SILU ||
           attn_error_set(error,
                          CONFIG_FILE_NAME ": hidden_act %.64s is not supported for a Llama, only "
                                           "silu is",
                          name);
}

static bool take_settings(void *user, const json_t *object, struct attn_error *error)
{
    struct causal_configuration *configuration = user;
    bool tied;
    if (!config_expect_type(object, "llama", error) || !refuse_unknown(object, error) ||
        !read_sizes(&configuration->settings, object, error) ||
        !read_rope(configuration, object, error) || !check_activation(object, error) ||
        !expect_one(object, "pretraining_tp", error) ||
        !config_share(object, "rms_norm_eps", 1e-6, &configuration->norm_epsilon, error) ||
        !read_switch(object, "attention_bias", false, &configuration->attention_bias, error) ||
        !read_switch(object, "mlp_bias", false, &configuration->inner_bias, error) ||
        !read_switch(object, "tie_word_embeddings", false, &tied, error))
        return false;
    configuration->own_head = !tied;
    return true;
}

bool causal_read_llama(struct causal_configuration *configuration, const char *directory,
                       struct attn_error *error)
{
    *configuration = (struct causal_configuration){.settings = {.kind = MODEL_LLAMA}};
    return config_read(directory, take_settings, configuration, error);
}
