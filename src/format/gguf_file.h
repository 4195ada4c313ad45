/* What the files of the GGUF reader share: a walk over bytes that it does not trust, and what it
 * finds there. */
#ifndef ATTN_FORMAT_GGUF_FILE_H
#define ATTN_FORMAT_GGUF_FILE_H

#include "base/file.h"
#include "format/gguf.h"

/* Numbers of the format, in its order. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

struct gguf_value {
    char *key; /* owned */
    bool array;
    enum gguf_type type;        /* of the items of an array */
    uint64_t count;             /* items of an array */
    const unsigned char *bytes; /* the value, or the first item; the walk has seen their end */
};

struct gguf {
    struct attn_file_map map;
    char *path;
    struct gguf_value *values; /* [value_count], as in the file */
    size_t value_count;
    const struct gguf_value **values_by_key;
    struct stored_tensor *tensors; /* [tensor_count], as in the file; names are owned */
    size_t tensor_count;
    const struct stored_tensor **tensors_by_name;
};

/* A place in the file: all before it has been checked. */
struct gguf_cursor {
    const char *path;
    struct attn_error *error;
    const unsigned char *next;
    size_t left;
    const char *part; /* of the file, for "the file ends inside the PART" */
};

/* Each takes what it reads and fails at the end of the file: gguf_take with NULL. */
const unsigned char *gguf_take(struct gguf_cursor *cursor, size_t size);
bool gguf_take_u32(struct gguf_cursor *cursor, uint32_t *number);
bool gguf_take_u64(struct gguf_cursor *cursor, uint64_t *number);
bool gguf_take_string(struct gguf_cursor *cursor, struct gguf_string *string);

/* A newly allocated, terminated copy; a string with a NUL in it is refused. */
bool gguf_take_name(struct gguf_cursor *cursor, char **name);

/* Refuses a count of things, each of at least `least_size` bytes, that the rest of the file cannot
 * hold: so no memory is taken for more than the file is worth. */
bool gguf_check_count(const struct gguf_cursor *cursor, uint64_t count, size_t least_size);

/* Fills the values; the cursor stands behind the header and then behind them. */
bool gguf_read_values(struct gguf *file, struct gguf_cursor *cursor, uint64_t count);

/* Fills the tensors; the cursor stands behind the values. */
bool gguf_read_tensors(struct gguf *file, struct gguf_cursor *cursor, uint64_t count);

/* NULL where there is none. */
const struct gguf_value *gguf_value_find(const struct gguf *file, const char *key);

#endif
