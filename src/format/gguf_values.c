/* The values of keys, as what the caller expects them to be. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/gguf_file.h"
#include "format/stored_number.h"

static const char *const type_names[GGUF_TYPES] = {
    [GGUF_U8] = "u8",   [GGUF_I8] = "i8",   [GGUF_U16] = "u16", [GGUF_I16] = "i16",
    [GGUF_U32] = "u32", [GGUF_I32] = "i32", [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
    [GGUF_U64] = "u64", [GGUF_I64] = "i64", [GGUF_F64] = "f64", [GGUF_STRING] = "string",
};

/* What is asked of a file, and the way to say that it is not there. */
struct request {
    const struct gguf *file;
    const char *key;
    struct attn_error *error;
};

/* "PATH: KEY is" and what follows. */
#define REFUSE(request, format, ...)                                                               \
    attn_error_set((request)->error, "%s: %.160s is " format, (request)->file->path,               \
                   (request)->key, __VA_ARGS__)

static bool refuse_type(const struct request *request, const struct gguf_value *value,
                        const char *expected)
{
    const char *plural = value->array && value->type == GGUF_STRING ? "s" : "";
    return REFUSE(request, "%s%s%s, expected %s", value->array ? "an array of " : "",
                  type_names[value->type], plural, expected);
}

static bool refuse_items(const struct request *request, const struct gguf_value *value,
                         const char *expected)
{
    if (value->array)
        return refuse_type(request, value, expected);
    return REFUSE(request, "%s, expected an array of %s", type_names[value->type], expected);
}

/* *value is NULL where the key is missing and need not be there. */
static bool find(const struct request *request, enum gguf_need need,
                 const struct gguf_value **value)
{
    *value = gguf_value_find(request->file, request->key);
    if (!*value && need == GGUF_REQUIRED)
        return attn_error_set(request->error, "%s: the file has no %s", request->file->path,
                              request->key);
    return true;
}

/* The same for a value of one of two types, and no array. */
static bool find_of(const struct request *request, enum gguf_need need, enum gguf_type first,
                    enum gguf_type second, const char *expected, const struct gguf_value **value)
{
    if (!find(request, need, value))
        return false;
    const struct gguf_value *found = *value;
    return !found || (!found->array && (found->type == first || found->type == second)) ||
           refuse_type(request, found, expected);
}

static bool read_integer(const struct request *request, const struct gguf_value *value,
                         int64_t *number)
{
    const unsigned char *bytes = value->bytes;
    if (value->array)
        return refuse_type(request, value, "a whole number");
    switch (value->type) {
    case GGUF_U8:
        *number = bytes[0];
        return true;
    case GGUF_I8:
        *number = (int8_t)bytes[0];
        return true;
    case GGUF_U16:
        *number = stored_u16(bytes);
        return true;
    case GGUF_I16:
        *number = (int16_t)stored_u16(bytes);
        return true;
    case GGUF_U32:
        *number = stored_u32(bytes);
        return true;
    case GGUF_I32:
        *number = (int32_t)stored_u32(bytes);
        return true;
    case GGUF_U64:
        if (stored_u64(bytes) > INT64_MAX)
            return REFUSE(request, "%" PRIu64 ", expected at most %" PRId64, stored_u64(bytes),
                          INT64_MAX);
        *number = (int64_t)stored_u64(bytes);
        return true;
    case GGUF_I64:
        *number = (int64_t)stored_u64(bytes);
        return true;
    default:
        return refuse_type(request, value, "a whole number");
    }
}

bool gguf_integer(const struct gguf *file, const char *key, enum gguf_need need, int64_t *value,
                  struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    return find(&request, need, &found) && (!found || read_integer(&request, found, value));
}

bool gguf_float(const struct gguf *file, const char *key, enum gguf_need need, double *value,
                struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    if (!find_of(&request, need, GGUF_F32, GGUF_F64, "f32 or f64", &found))
        return false;
    if (found)
        *value = found->type == GGUF_F32 ? (double)stored_float(found->bytes)
                                         : stored_double(found->bytes);
    return true;
}

bool gguf_bool(const struct gguf *file, const char *key, enum gguf_need need, bool *value,
               struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    if (!find_of(&request, need, GGUF_BOOL, GGUF_BOOL, "bool", &found))
        return false;
    if (found && found->bytes[0] > 1)
        return REFUSE(&request, "%d, expected 0 or 1", found->bytes[0]);
    if (found)
        *value = found->bytes[0] == 1;
    return true;
}

/* A string that the walk at opening has seen to lie inside the file; returns what is behind it. */
static const unsigned char *read_text(const unsigned char *bytes, struct gguf_string *text)
{
    *text = (struct gguf_string){(const char *)bytes + 8, (size_t)stored_u64(bytes)};
    return bytes + 8 + text->size;
}

bool gguf_text(const struct gguf *file, const char *key, enum gguf_need need,
               struct gguf_string *value, struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    if (!find_of(&request, need, GGUF_STRING, GGUF_STRING, "a string", &found))
        return false;
    if (found)
        read_text(found->bytes, value);
    return true;
}

/* Finds an array of one of two types and takes memory for its items, one more so that no array is
 * NULL; *found is NULL where the key is missing and need not be there. */
static bool open_array(const struct request *request, enum gguf_need need, enum gguf_type first,
                       enum gguf_type second, const char *expected, size_t item_size,
                       const struct gguf_value **found, void **items)
{
    if (!find(request, need, found))
        return false;
    if (!*found)
        return true;
    const struct gguf_value *value = *found;
    if (!value->array || (value->type != first && value->type != second))
        return refuse_items(request, value, expected);
    *items = calloc((size_t)value->count + 1, item_size);
    return *items || attn_error_memory(request->error);
}

bool gguf_texts(const struct gguf *file, const char *key, enum gguf_need need,
                struct gguf_string **items, size_t *count, struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    void *memory = NULL;
    *items = NULL;
    *count = 0;
    if (!open_array(&request, need, GGUF_STRING, GGUF_STRING, "strings", sizeof **items, &found,
                    &memory))
        return false;
    if (!found)
        return true;
    *items = memory;
    *count = (size_t)found->count;
    const unsigned char *bytes = found->bytes;
    for (size_t i = 0; i < *count; i++)
        bytes = read_text(bytes, &(*items)[i]);
    return true;
}

static bool read_integers(const struct request *request, const struct gguf_value *value,
                          int32_t *items)
{
    for (size_t i = 0; i < value->count; i++) {
        uint32_t number = stored_u32(value->bytes + 4 * i);
        if (value->type == GGUF_U32 && number > INT32_MAX)
            return attn_error_set(
                request->error, "%s: item %zu of %.160s is %" PRIu32 ", expected at most %" PRId32,
                request->file->path, i, request->key, number, INT32_MAX);
        items[i] = (int32_t)number;
    }
    return true;
}

bool gguf_integers(const struct gguf *file, const char *key, enum gguf_need need, int32_t **items,
                   size_t *count, struct attn_error *error)
{
    const struct request request = {file, key, error};
    const struct gguf_value *found;
    void *memory = NULL;
    *items = NULL;
    *count = 0;
    if (!open_array(&request, need, GGUF_I32, GGUF_U32, "whole numbers of 32 bits", sizeof **items,
                    &found, &memory))
        return false;
    if (!found)
        return true;
    if (!read_integers(&request, found, memory)) {
        free(memory);
        return false;
    }
    *items = memory;
    *count = (size_t)found->count;
    return true;
}
