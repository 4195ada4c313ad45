/* A file that is written in pieces, whole or not at all: to a temporary file beside its path, which
 * is synced and renamed at the end. What is not a regular file (/dev/stdout, a pipe) is written to
 * directly. */
#ifndef ATTN_BASE_FILE_WRITE_H
#define ATTN_BASE_FILE_WRITE_H

#include <stddef.h>

#include "base/error.h"

struct attn_file_writer {
    const char *path; /* the caller's, and lives as long */
    int file;
    char *temporary, *target; /* NULL where `path` is written to directly */
};

/* Errors name the path. After a failure to open or to finish nothing is held or left behind; after
 * any other step the caller finishes or abandons. */
bool attn_file_writer_open(struct attn_file_writer *writer, const char *path,
                           struct attn_error *error);
bool attn_file_writer_add(struct attn_file_writer *writer, const void *data, size_t size,
                          struct attn_error *error);
bool attn_file_writer_finish(struct attn_file_writer *writer, struct attn_error *error);
void attn_file_writer_abandon(struct attn_file_writer *writer); /* leaves what was there before */

#endif
