#include "base/json_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* The value in a file that is of this type; `name` is the type's for messages. */
static bool read_value(const char *path, size_t limit, json_type type, const char *name,
                       json_t **result, struct attn_error *error)
{
    *result = NULL;
    char *text;
    size_t size;
    if (!attn_file_read(path, limit, &text, &size, error))
        return false;
    json_error_t problem;
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    free(text);
    if (!value && json_error_code(&problem) == json_error_out_of_memory)
        return attn_error_memory(error);
    if (!value)
        return attn_error_set(error, "%s: line %d is not valid JSON: %s", path, problem.line,
                              problem.text);
    if (json_typeof(value) != type) {
        json_decref(value);
        return attn_error_set(error, "%s: holds no JSON %s", path, name);
    }
    *result = value;
    return true;
}

bool attn_json_read_object(const char *path, size_t limit, json_t **object,
                           struct attn_error *error)
{
    return read_value(path, limit, JSON_OBJECT, "object", object, error);
}

bool attn_json_read_array(const char *path, size_t limit, json_t **array, struct attn_error *error)
{
    return read_value(path, limit, JSON_ARRAY, "array", array, error);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The value as a message shows it: scalars as they are spelled, others by what they are. */
static void describe(const json_t *value, char *text, size_t size)
{
    if (json_is_array(value) || json_is_object(value)) {
        snprintf(text, size, "%s", json_is_array(value) ? "an array" : "an object");
        return;
    }
    char *spelling = json_dumps(value, JSON_ENCODE_ANY);
    snprintf(text, size, "%s", spelling ? spelling : "of another type");
    free(spelling);
}

bool attn_json_integer(const json_t *object, const char *path, const char *name, long long minimum,
                       long long maximum, const long long *fallback, long long *value,
                       struct attn_error *error)
{
    const json_t *field = json_object_get(object, name);
    if (!field || json_is_null(field)) {
        if (!fallback)
            return attn_error_set(error, "%s has no %s", last_component(path), name);
        *value = *fallback;
        return true;
    }
    if (json_is_integer(field) && json_integer_value(field) >= minimum &&
        json_integer_value(field) <= maximum) {
        *value = json_integer_value(field);
        return true;
    }
    char found[64];
    describe(field, found, sizeof found);
    return attn_error_set(error, "%s: %s is %s, expected a whole number in %lld..%lld",
                          last_component(path), name, found, minimum, maximum);
}
