#include "model/config_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"

enum {
    CONFIG_LIMIT = 1 << 24 /* bytes; label lists make some of these files long, but not that long */
};

bool config_read(const char *directory,
                 bool (*take)(void *config, const json_t *object, struct attn_error *error),
                 void *config, struct attn_error *error)
{
    char *path = attn_path_join(directory, CONFIG_FILE_NAME);
    if (!path)
        return attn_error_memory(error);
    json_t *object = NULL;
    bool done = attn_json_read_object(path, CONFIG_LIMIT, &object, error);
    struct attn_error fault;
    if (done && !take(config, object, &fault))
        done = attn_error_set(error, "%s/%s", directory, fault.message);
    json_decref(object);
    free(path);
    return done;
}

bool config_text(const json_t *object, const char *name, bool required, const char **text,
                 struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    *text = json_string_value(field);
    if (*text)
        return true;
    if (!field && required)
        return attn_error_set(error, CONFIG_FILE_NAME " has no %s", name);
    if (required || (field && !json_is_null(field)))
        return attn_error_set(error, CONFIG_FILE_NAME ": %s is not a string", name);
    return true;
}

bool config_sizes(const json_t *object, const struct config_size *fields, size_t count,
                  struct attn_error *error)
{
    for (size_t n = 0; n < count; n++) {
        long long value;
        if (!attn_json_integer(object, CONFIG_FILE_NAME, fields[n].name, 1, fields[n].limit, NULL,
                               &value, error))
            return false;
        *fields[n].size = value;
    }
    return true;
}

bool config_check_heads(const char *heads_name, int64_t heads, const char *width_name,
                        int64_t width, struct attn_error *error)
{
    return width % heads == 0 ||
           attn_error_set(error, CONFIG_FILE_NAME ": %s %lld does not divide %s %lld", heads_name,
                          (long long)heads, width_name, (long long)width);
}

bool config_share(const json_t *object, const char *name, double fallback, float *share,
                  struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    double number = fallback;
    if (field && !json_is_null(field)) {
        number = json_is_number(field) ? json_number_value(field) : NAN;
        if (!(number >= 0.0 && number <= 1.0))
            return attn_error_set(error, CONFIG_FILE_NAME ": %s is not a number between 0 and 1",
                                  name);
    }
    *share = (float)number;
    return true;
}

bool config_activation(const json_t *object, const char *name, const char *fallback,
                       enum activation *activation, struct attn_error *error)
{
    const char *text;
    if (!config_text(object, name, fallback == NULL, &text, error))
        return false;
    return activation_from_name(text ? text : fallback, activation) ||
           attn_error_set(error, CONFIG_FILE_NAME ": %s %.64s is not known", name, text);
}

bool config_expect(const json_t *object, const char *name, bool expected, const char *reason,
                   struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    if (!field || json_is_null(field) || (expected ? json_is_true(field) : json_is_false(field)))
        return true;
    return attn_error_set(error, CONFIG_FILE_NAME ": %s is not %s: %s", name,
                          expected ? "true" : "false", reason);
}

bool config_expect_type(const json_t *object, const char *expected, struct attn_error *error)
{
    const char *type;
    if (!config_text(object, "model_type", true, &type, error))
        return false;
    return strcmp(type, expected) == 0 ||
           attn_error_set(error,
                          CONFIG_FILE_NAME ": model_type %.64s is not supported here, only %s is",
                          type, expected);
}

const char *config_activation_name(enum activation activation)
{
    switch (activation) {
    case ACTIVATION_GELU_ERF:
        return "gelu";
    case ACTIVATION_GELU_TANH:
        return "gelu_new";
    case ACTIVATION_RELU:
        return "relu";
    case ACTIVATION_SILU:
        return "silu";
    }
    return NULL;
}

void config_add_float(struct attn_buffer *text, const char *name, float value)
{
    attn_buffer_format(text, "  \"%s\": ", name);
    attn_buffer_add_json_float(text, value);
    attn_buffer_add_text(text, ",\n");
}

void config_add_id(struct attn_buffer *text, const char *name, int32_t id)
{
    if (id < 0)
        attn_buffer_format(text, "  \"%s\": null,\n", name);
    else
        attn_buffer_format(text, "  \"%s\": %ld,\n", name, (long)id);
}

bool config_write(const char *directory, struct attn_buffer *text, struct attn_error *error)
{
    char *path = attn_path_join(directory, CONFIG_FILE_NAME);
    bool written = path && !text->failed ? attn_file_write(path, text->data, text->size, error)
                                         : attn_error_memory(error);
    free(path);
    attn_buffer_release(text);
    return written;
}
