/* A JSON file or text parsed with jansson, errors told by file and line. */
#ifndef ATTN_BASE_JSON_FILE_H
#define ATTN_BASE_JSON_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The object in `path`, of at most `limit` bytes; release with json_decref. Repeated keys, invalid
 * UTF-8, anything behind the value, and a value that is not an object are refused. */
bool attn_json_read_object(const char *path, size_t limit, json_t **object,
                           struct attn_error *error);

/* The same for an array. */
bool attn_json_read_array(const char *path, size_t limit, json_t **array, struct attn_error *error);

/* A field that holds a whole number in minimum..maximum. A missing field is an error when
 * `fallback` is NULL, else *value = *fallback; so is null. Messages read "PATH has no NAME" and
 * "PATH: NAME is …, expected …", PATH being the file's last component. */
bool attn_json_integer(const json_t *object, const char *path, const char *name, long long minimum,
                       long long maximum, const long long *fallback, long long *value,
                       struct attn_error *error);

#endif
