#include "format/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf_file.h"

enum { OLDEST_VERSION = 2, NEWEST_VERSION = 3 };

static bool check_version(const struct gguf_cursor *cursor, uint32_t version)
{
    if (version >= OLDEST_VERSION && version <= NEWEST_VERSION)
        return true;
    if (version > 0 && (version & 0xffff) == 0)
        return attn_error_set(cursor->error, "%s: the file is big-endian, which is not supported",
                              cursor->path);
    return attn_error_set(cursor->error,
                          "%s: GGUF version %" PRIu32 " is not supported, only %d and %d are",
                          cursor->path, version, OLDEST_VERSION, NEWEST_VERSION);
}

static bool read_file(struct gguf *file, struct attn_error *error)
{
    static const char magic[] = {'G', 'G', 'U', 'F'};
    struct gguf_cursor cursor = {
        .path = file->path,
        .error = error,
        .next = file->map.data,
        .left = file->map.size,
        .part = "header",
    };
    if (cursor.left < sizeof magic || memcmp(cursor.next, magic, sizeof magic) != 0)
        return attn_error_set(error, "%s: not a GGUF file", file->path);
    cursor.next += sizeof magic;
    cursor.left -= sizeof magic;

    uint32_t version;
    uint64_t tensor_count;
    uint64_t value_count;
    return gguf_take_u32(&cursor, &version) && check_version(&cursor, version) &&
           gguf_take_u64(&cursor, &tensor_count) && gguf_take_u64(&cursor, &value_count) &&
           gguf_read_values(file, &cursor, value_count) &&
           gguf_read_tensors(file, &cursor, tensor_count);
}

bool gguf_is_name(const char *path)
{
    static const char end[] = ".gguf";
    const size_t size = strlen(path), end_size = sizeof end - 1;
    return size >= end_size && strcmp(path + size - end_size, end) == 0;
}

bool gguf_open(struct gguf **file, const char *path, struct attn_error *error)
{
    *file = NULL;
    struct gguf *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    opened->path = strdup(path);
    bool done = opened->path
                    ? attn_file_map_open(&opened->map, path, error) && read_file(opened, error)
                    : attn_error_memory(error);
    if (!done) {
        gguf_close(opened);
        return false;
    }
    *file = opened;
    return true;
}

void gguf_close(struct gguf *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->value_count; i++)
        free(file->values[i].key);
    for (size_t i = 0; i < file->tensor_count; i++)
        free((void *)(uintptr_t)file->tensors[i].name);
    free(file->values);
    free(file->values_by_key);
    free(file->tensors);
    free(file->tensors_by_name);
    attn_file_map_close(&file->map);
    free(file->path);
    free(file);
}

const char *gguf_path(const struct gguf *file)
{
    return file->path;
}
