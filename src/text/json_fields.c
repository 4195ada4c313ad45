#include "text/json_fields.h"

#include <string.h>

const json_t *json_field(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static bool refuse(const json_t *value, const char *place, const char *name, const char *expected,
                   struct attn_error *error)
{
    return attn_error_set(error, "%s %s %s, expected %s", place,
                          value ? "has another kind of" : "has no", name, expected);
}

bool json_field_flag(const json_t *object, const char *place, const char *name, bool *value,
                     struct attn_error *error)
{
    const json_t *field = json_field(object, name);
    if (!json_is_boolean(field))
        return refuse(field, place, name, "true or false", error);
    *value = json_is_true(field);
    return true;
}

bool json_field_text(const json_t *object, const char *place, const char *name, const char **value,
                     struct attn_error *error)
{
    const json_t *field = json_field(object, name);
    if (!json_is_string(field))
        return refuse(field, place, name, "a string", error);
    *value = json_string_value(field);
    return true;
}

const json_t *json_field_object(const json_t *object, const char *place, const char *name,
                                struct attn_error *error)
{
    const json_t *field = json_field(object, name);
    if (json_is_object(field))
        return field;
    refuse(field, place, name, "an object", error);
    return NULL;
}

const json_t *json_field_array(const json_t *object, const char *place, const char *name,
                               struct attn_error *error)
{
    const json_t *field = json_field(object, name);
    if (json_is_array(field))
        return field;
    refuse(field, place, name, "an array", error);
    return NULL;
}

const json_t *json_unwrap_sequence(const json_t *component, const char *place, const char *list,
                                   struct attn_error *error)
{
    const char *type = NULL;
    while (json_field_text(component, place, "type", &type, error)) {
        if (strcmp(type, "Sequence") != 0)
            return component;
        const json_t *components = json_field_array(component, place, list, error);
        if (!components)
            return NULL;
        if (json_array_size(components) != 1) {
            attn_error_set(error, "%s: a Sequence of %zu is not implemented, only of 1", place,
                           json_array_size(components));
            return NULL;
        }
        component = json_array_get(components, 0);
    }
    return NULL;
}
