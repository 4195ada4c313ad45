/* Fields of the objects in tokenizer.json and tokenizer_config.json. `place` names the object in
 * messages, as in "tokenizer.json: model": "PLACE has no NAME, expected a string". */
#ifndef ATTN_TEXT_JSON_FIELDS_H
#define ATTN_TEXT_JSON_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* The value of a field, NULL where it is missing or null. */
const json_t *json_field(const json_t *object, const char *name);

bool json_field_flag(const json_t *object, const char *place, const char *name, bool *value,
                     struct attn_error *error);

/* *value belongs to the object. */
bool json_field_text(const json_t *object, const char *place, const char *name, const char **value,
                     struct attn_error *error);

/* The field, which must be an object. */
const json_t *json_field_object(const json_t *object, const char *place, const char *name,
                                struct attn_error *error);

/* The field, which must be an array. */
const json_t *json_field_array(const json_t *object, const char *place, const char *name,
                               struct attn_error *error);

/* The component itself, or the only one of a Sequence (and of a Sequence in that …), whose list has
 * this name. The result has a string "type". */
const json_t *json_unwrap_sequence(const json_t *component, const char *place, const char *list,
                                   struct attn_error *error);

#endif
