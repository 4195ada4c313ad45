/* One safetensors file, mapped: named tensors in it.
 *
 * Format: 8 bytes little-endian N, N bytes of JSON {name: {dtype, shape, data_offsets}} with an
 * optional "__metadata__" of strings, then the data, which the tensors cover without gap or overlap
 * (the format's published description). Every size is checked before it is used. */
#ifndef ATTN_FORMAT_SAFETENSORS_H
#define ATTN_FORMAT_SAFETENSORS_H

#include "format/stored_tensor.h"

struct safetensors;

/* Opens and checks a file. Errors name the path and the tensor and say what is wrong:
 * "PATH: tensor w: shape [4] of F64 needs 32 bytes, the offsets give 16". */
bool safetensors_open(struct safetensors **file, const char *path, struct attn_error *error);

/* NULL is allowed. Ends the life of all its tensors. */
void safetensors_close(struct safetensors *file);

/* Tensors in the order of their data. */
size_t safetensors_count(const struct safetensors *file);
const struct stored_tensor *safetensors_at(const struct safetensors *file, size_t index);

/* By name, NULL where there is none. */
const struct stored_tensor *safetensors_find(const struct safetensors *file, const char *name);

/* The value of a key of "__metadata__", NULL where there is none. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

#endif
