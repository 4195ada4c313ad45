/* Whole files: read by mapping, written whole or not at all. */
#ifndef ATTN_BASE_FILE_H
#define ATTN_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct attn_file_map {
    const unsigned char *data; /* NULL for an empty file */
    size_t size;
};

/* Maps a regular file read-only. Errors name the path: it is missing, a folder, not readable. */
bool attn_file_map_open(struct attn_file_map *map, const char *path, struct attn_error *error);
void attn_file_map_close(struct attn_file_map *map);

/* Reads a file or, for "-", standard input into newly allocated memory with a NUL behind its size
 * bytes; the caller frees it. More than `limit` bytes are refused. */
bool attn_file_read(const char *path, size_t limit, char **data, size_t *size,
                    struct attn_error *error);

/* Writes to a temporary file beside `path`, syncs it and renames it to `path`; on failure nothing
 * is left behind. An existing file keeps its permissions. What is not a regular file (/dev/stdout,
 * a pipe) is written to directly. */
bool attn_file_write(const char *path, const void *data, size_t size, struct attn_error *error);

/* Whether attn_file_write could begin to write `path` now: for what is written at the end of long
 * work. Leaves no trace; a pipe or a device is not
 * opened and passes. */
bool attn_file_check_write(const char *path, struct attn_error *error);

/* directory + "/" + name in newly allocated memory, NULL when there is none. */
char *attn_path_join(const char *directory, const char *name);

/* Whether a file or folder is there. */
bool attn_path_exists(const char *path);

/* Whether it is a folder, or a link to one. */
bool attn_path_is_folder(const char *path);

#endif
