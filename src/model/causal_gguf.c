/* The settings of a GPT-2 or Llama: metadata of a GGUF file, keys ARCHITECTURE.NAME. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "model/causal_parts.h"
#include "model/config_fields.h"

enum { KEY_SIZE = 128 };

struct reading {
    const struct gguf *file;
    const char *architecture;
    struct attn_error *error;
};

/* Keys that are read below, or tell nothing that a number depends on. */
static const char *const gpt2_keys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_epsilon",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
};
static const char *const llama_keys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

/* Numbers that are harmless with one of two values. */
static const struct {
    const char *name;
    double neutral, other;
} neutral_keys[] = {
    {"attention.causal", 1, 1},
    {"attention.clamp_kqv", 0, 0},
    {"attention.max_alibi_bias", 0, 0},
    {"attention.scale", 0, 0},
    {"attention.sliding_window", 0, 0},
    {"attn_logit_softcapping", 0, 0},
    {"embedding_scale", 0, 1},
    {"expert_count", 0, 0},
    {"expert_used_count", 0, 0},
    {"final_logit_softcapping", 0, 0},
    {"logit_scale", 0, 1},
    {"residual_scale", 0, 1},
    {"rope.scale_linear", 0, 1},
    {"rope.scaling.attn_factor", 0, 1},
    {"rope.scaling.factor", 0, 1},
    {"use_parallel_residual", 0, 0},
};

static const char *key_of(const struct reading *reading, const char *name, char key[KEY_SIZE])
{
    snprintf(key, KEY_SIZE, "%s.%s", reading->architecture, name);
    return key;
}

static bool read_size(const struct reading *reading, const char *name, enum gguf_need need,
                      int64_t limit, int64_t *size)
{
    char key[KEY_SIZE];
    if (!gguf_integer(reading->file, key_of(reading, name, key), need, size, reading->error))
        return false;
    return (*size >= 1 && *size <= limit) ||
           attn_error_set(reading->error, "%s: %s is %lld, expected a whole number in 1..%lld",
                          gguf_path(reading->file), key, (long long)*size, (long long)limit);
}

static bool read_positive(const struct reading *reading, const char *name, enum gguf_need need,
                          float *number)
{
    char key[KEY_SIZE];
    double value = (double)*number;
    if (!gguf_float(reading->file, key_of(reading, name, key), need, &value, reading->error))
        return false;
    *number = (float)value;
    return (value >= (double)FLT_MIN && value <= (double)FLT_MAX) ||
           attn_error_set(reading->error, "%s: %s is %g, expected a number above 0",
                          gguf_path(reading->file), key, value);
}

/* A key's value as a number, whatever kind of number or switch it is. */
static bool number_of(const struct reading *reading, const char *key, double *number)
{
    int64_t whole;
    bool on;
    if (gguf_integer(reading->file, key, GGUF_REQUIRED, &whole, NULL))
        *number = (double)whole;
    else if (gguf_bool(reading->file, key, GGUF_REQUIRED, &on, NULL))
        *number = on ? 1.0 : 0.0;
    else
        return gguf_float(reading->file, key, GGUF_REQUIRED, number, reading->error);
    return true;
}

static bool check_neutral(const struct reading *reading, const char *key, double neutral,
                          double other)
{
    double number;
    return number_of(reading, key, &number) &&
           (number == neutral || number == other ||
            attn_error_set(reading->error, "%s: %s is %g, which is not supported, only %g is",
                           gguf_path(reading->file), key, number, other));
}

static bool check_key(const struct reading *reading, const char *key, const char *name)
{
    const bool gpt2 = strcmp(reading->architecture, "gpt2") == 0;
    const char *const *known = gpt2 ? gpt2_keys : llama_keys;
    const size_t count =
        gpt2 ? sizeof gpt2_keys / sizeof gpt2_keys[0] : sizeof llama_keys / sizeof llama_keys[0];
    for (size_t n = 0; n < count; n++)
        if (strcmp(name, known[n]) == 0)
            return true;
    for (size_t n = 0; n < sizeof neutral_keys / sizeof neutral_keys[0]; n++)
        if (strcmp(name, neutral_keys[n].name) == 0)
            return check_neutral(reading, key, neutral_keys[n].neutral, neutral_keys[n].other);
    return attn_error_set(reading->error, "%s: %s is not supported", gguf_path(reading->file), key);
}

/* All keys of the architecture's namespace are known, or the file is refused. */
static bool check_keys(const struct reading *reading)
{
    const size_t size = strlen(reading->architecture);
    for (size_t n = 0; n < gguf_key_count(reading->file); n++) {
        const char *key = gguf_key_at(reading->file, n);
        if (strncmp(key, reading->architecture, size) == 0 && key[size] == '.' &&
            !check_key(reading, key, key + size + 1))
            return false;
    }
    return true;
}

/* Where there is such a text, it is the expected one. */
static bool expect_text(const struct reading *reading, const char *key, const char *expected)
{
    struct gguf_string text = {NULL, 0};
    if (!gguf_text(reading->file, key, GGUF_OPTIONAL, &text, reading->error))
        return false;
    return !text.text ||
           (text.size == strlen(expected) && memcmp(text.text, expected, text.size) == 0) ||
           attn_error_set(reading->error, "%s: %s is %.*s, which is not supported, only %s is",
                          gguf_path(reading->file), key, text.size < 64 ? (int)text.size : 64,
                          text.text, expected);
}

/* The words are as many as their table has rows. */
static bool read_vocabulary(const struct reading *reading, struct causal_settings *settings)
{
    const struct stored_tensor *words = gguf_tensor(reading->file, "token_embd.weight");
    if (!words || words->rank != 2)
        return attn_error_set(reading->error, "%s: the file has no matrix token_embd.weight",
                              gguf_path(reading->file));
    int64_t vocabulary = words->shape[0];
    if (!read_size(reading, "vocab_size", GGUF_OPTIONAL, CONFIG_SIZE_LIMIT, &vocabulary))
        return false;
    settings->vocabulary = vocabulary;
    return true;
}

static bool check_divides(const struct reading *reading, const char *name, int64_t heads,
                          const char *of, int64_t whole)
{
    return whole % heads == 0 ||
           attn_error_set(reading->error, "%s: %s.%s %lld does not divide %s.%s %lld",
                          gguf_path(reading->file), reading->architecture, name, (long long)heads,
                          reading->architecture, of, (long long)whole);
}

static bool read_sizes(const struct reading *reading, struct causal_settings *settings)
{
    static const char heads[] = "attention.head_count", key_heads[] = "attention.head_count_kv";
    if (!read_vocabulary(reading, settings) ||
        !read_size(reading, "block_count", GGUF_REQUIRED, CONFIG_LAYER_LIMIT, &settings->layers) ||
        !read_size(reading, "embedding_length", GGUF_REQUIRED, CONFIG_SIZE_LIMIT,
                   &settings->width) ||
        !read_size(reading, "feed_forward_length", GGUF_REQUIRED, CONFIG_SIZE_LIMIT,
                   &settings->inner) ||
        !read_size(reading, "context_length", GGUF_REQUIRED, INT32_MAX, &settings->context) ||
        !read_size(reading, heads, GGUF_REQUIRED, CONFIG_SIZE_LIMIT, &settings->heads))
        return false;
    settings->key_heads = settings->heads;
    return read_size(reading, key_heads, GGUF_OPTIONAL, CONFIG_SIZE_LIMIT, &settings->key_heads) &&
           check_divides(reading, key_heads, settings->key_heads, heads, settings->heads);
}

static bool read_gpt2(const struct reading *reading, struct causal_configuration *configuration)
{
    struct causal_settings *settings = &configuration->settings;
    if (settings->key_heads != settings->heads)
        return attn_error_set(reading->error,
                              "%s: gpt2.attention.head_count_kv is %lld, which is not supported, "
                              "only %lld as gpt2.attention.head_count is",
                              gguf_path(reading->file), (long long)settings->key_heads,
                              (long long)settings->heads);
    settings->head_size = settings->width / settings->heads;
    configuration->activation = ACTIVATION_GELU_TANH;
    configuration->attention_bias = configuration->inner_bias = true;
    return check_divides(reading, "attention.head_count", settings->heads, "embedding_length",
                         settings->width) &&
           read_positive(reading, "attention.layer_norm_epsilon", GGUF_REQUIRED,
                         &configuration->norm_epsilon);
}

static bool read_head_size(const struct reading *reading, struct causal_settings *settings)
{
    const int64_t limit = CONFIG_SIZE_LIMIT / settings->heads;
    int64_t *size = &settings->head_size;
    if (gguf_has(reading->file, "llama.attention.key_length")) {
        if (!read_size(reading, "attention.key_length", GGUF_REQUIRED, limit, size))
            return false;
    } else {
        *size = settings->width / settings->heads;
        if (!check_divides(reading, "attention.head_count", settings->heads, "embedding_length",
                           settings->width))
            return false;
    }
    int64_t values = *size, turned = *size;
    if (!read_size(reading, "attention.value_length", GGUF_OPTIONAL, limit, &values) ||
        !read_size(reading, "rope.dimension_count", GGUF_OPTIONAL, limit, &turned))
        return false;
    if (values != *size)
        return attn_error_set(reading->error,
                              "%s: llama.attention.value_length is %lld, which is not supported, "
                              "only %lld as keys have is",
                              gguf_path(reading->file), (long long)values, (long long)*size);
    return (turned == *size && turned % 2 == 0) ||
           attn_error_set(reading->error,
                          "%s: llama.rope.dimension_count is %lld, which is not supported, only "
                          "all %lld numbers of a head are, in pairs",
                          gguf_path(reading->file), (long long)turned, (long long)*size);
}

static bool read_llama(const struct reading *reading, struct causal_configuration *configuration)
{
    struct rope *rope = &configuration->rope;
    *rope = (struct rope){.pairs = ROPE_NEIGHBOURS, .theta = 10000.0f};
    if (!expect_text(reading, "llama.rope.scaling.type", "none") ||
        !expect_text(reading, "llama.tensor_data_layout", "Meta AI original pth") ||
        !read_head_size(reading, &configuration->settings) ||
        !read_positive(reading, "rope.freq_base", GGUF_OPTIONAL, &rope->theta) ||
        !read_positive(reading, "attention.layer_norm_rms_epsilon", GGUF_REQUIRED,
                       &configuration->norm_epsilon))
        return false;
    rope->d = configuration->settings.head_size;
    configuration->attention_bias = gguf_tensor(reading->file, "blk.0.attn_q.bias") != NULL;
    configuration->inner_bias = gguf_tensor(reading->file, "blk.0.ffn_up.bias") != NULL;
    return true;
}

bool causal_read_gguf(struct causal_configuration *configuration, const struct gguf *file,
                      enum model_kind kind, struct attn_error *error)
{
    const struct reading reading = {file, kind == MODEL_GPT2 ? "gpt2" : "llama", error};
    *configuration = (struct causal_configuration){
        .settings = {.kind = kind},
        .own_head = gguf_tensor(file, "output.weight") != NULL,
    };
    return expect_text(&reading, "general.type", "model") && check_keys(&reading) &&
           read_sizes(&reading, &configuration->settings) &&
           (kind == MODEL_GPT2 ? read_gpt2(&reading, configuration)
                               : read_llama(&reading, configuration));
}
