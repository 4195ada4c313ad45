/* Writes a safetensors file, whole or not at all. */
#ifndef ATTN_FORMAT_SAFETENSORS_WRITE_H
#define ATTN_FORMAT_SAFETENSORS_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct written_tensor {
    const char *name; /* UTF-8 */
    int rank;
    const int64_t *shape;
    const float *data; /* F32, row-major */
};

/* Metadata are pairs of strings: key, value, key, value, …; text_count is twice as many. Tensors
 * stand in the order given, their data aligned to 64 bytes of the file where the format allows it.
 * Written in pieces to a temporary file beside `path`, synced and renamed: memory does not grow
 * with the tensors, and a full disk leaves the file that was there. */
bool safetensors_write(const char *path, const struct written_tensor *tensors, size_t count,
                       const char *const *metadata, size_t text_count, struct attn_error *error);

#endif
