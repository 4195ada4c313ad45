#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf_file.h"

enum {
    LEAST_SIZE = 8 + 4 + 1, /* an empty key, a type, one byte */
    STRING_LEAST_SIZE = 8
};

/* Bytes of a value of fixed size; 0 for strings and arrays. */
static const unsigned char sizes[GGUF_TYPES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* "PATH: KEY" and what follows; a key of any length leaves room for that. */
#define REFUSE_KEY(cursor, key, format, ...)                                                       \
    attn_error_set((cursor)->error, "%s: %.160s" format, (cursor)->path, (key), __VA_ARGS__)

static bool take_type(struct gguf_cursor *cursor, const char *key, enum gguf_type *type)
{
    uint32_t number;
    if (!gguf_take_u32(cursor, &number))
        return false;
    if (number >= GGUF_TYPES)
        return REFUSE_KEY(cursor, key, " has unknown type %" PRIu32, number);
    *type = (enum gguf_type)number;
    return true;
}

static bool skip_items(struct gguf_cursor *cursor, const struct gguf_value *value)
{
    size_t size = sizes[value->type];
    if (value->count > cursor->left / (size ? size : STRING_LEAST_SIZE))
        return attn_error_set(cursor->error,
                              "%s: an array of %" PRIu64 " elements is beyond the end of the file",
                              cursor->path, value->count);
    if (size)
        return gguf_take(cursor, size * (size_t)value->count) != NULL;
    for (uint64_t i = 0; i < value->count; i++) {
        struct gguf_string string;
        if (!gguf_take_string(cursor, &string))
            return false;
    }
    return true;
}

static bool read_value(struct gguf_cursor *cursor, struct gguf_value *value)
{
    if (!gguf_take_name(cursor, &value->key) || !take_type(cursor, value->key, &value->type))
        return false;
    value->array = value->type == GGUF_ARRAY;
    if (value->array) {
        if (!take_type(cursor, value->key, &value->type))
            return false;
        if (value->type == GGUF_ARRAY)
            return REFUSE_KEY(cursor, value->key, "%s",
                              " is an array of arrays, which is not supported");
        if (!gguf_take_u64(cursor, &value->count))
            return false;
        value->bytes = cursor->next;
        return skip_items(cursor, value);
    }
    value->bytes = cursor->next;
    struct gguf_string string;
    return value->type == GGUF_STRING ? gguf_take_string(cursor, &string)
                                      : gguf_take(cursor, sizes[value->type]) != NULL;
}

static int compare_key(const void *a, const void *b)
{
    const struct gguf_value *const *x = a;
    const struct gguf_value *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static bool sort_values(struct gguf *file, const struct gguf_cursor *cursor)
{
    for (size_t i = 0; i < file->value_count; i++)
        file->values_by_key[i] = &file->values[i];
    qsort(file->values_by_key, file->value_count, sizeof(struct gguf_value *), compare_key);
    for (size_t i = 1; i < file->value_count; i++)
        if (strcmp(file->values_by_key[i - 1]->key, file->values_by_key[i]->key) == 0)
            return REFUSE_KEY(cursor, file->values_by_key[i]->key, "%s", " is there twice");
    return true;
}

bool gguf_read_values(struct gguf *file, struct gguf_cursor *cursor, uint64_t count)
{
    cursor->part = "metadata";
    if (!gguf_check_count(cursor, count, LEAST_SIZE))
        return false;
    file->values = calloc((size_t)count + 1, sizeof *file->values);
    file->values_by_key = calloc((size_t)count + 1, sizeof(struct gguf_value *));
    if (!file->values || !file->values_by_key)
        return attn_error_memory(cursor->error);
    while (file->value_count < count)
        if (!read_value(cursor, &file->values[file->value_count++]))
            return false;
    return sort_values(file, cursor);
}

const struct gguf_value *gguf_value_find(const struct gguf *file, const char *key)
{
    size_t begin = 0;
    size_t end = file->value_count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int order = strcmp(key, file->values_by_key[middle]->key);
        if (order == 0)
            return file->values_by_key[middle];
        if (order < 0)
            end = middle;
        else
            begin = middle + 1;
    }
    return NULL;
}

size_t gguf_key_count(const struct gguf *file)
{
    return file->value_count;
}

const char *gguf_key_at(const struct gguf *file, size_t index)
{
    return file->values[index].key;
}

bool gguf_has(const struct gguf *file, const char *key)
{
    return gguf_value_find(file, key) != NULL;
}
