/* The weights of a model directory: model.safetensors, or the shards that
 * model.safetensors.index.json names (which is followed where it is there). */
#ifndef ATTN_FORMAT_CHECKPOINT_H
#define ATTN_FORMAT_CHECKPOINT_H

#include "format/stored_tensor.h"

struct checkpoint;

/* Opens all files of a directory. A shard name that leaves the directory is refused before anything
 * is opened; a missing shard is named; so are a tensor that the index promises and its shard lacks.
 */
bool checkpoint_open(struct checkpoint **checkpoint, const char *directory,
                     struct attn_error *error);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is allowed */

/* The file that says which tensors there are, for messages: DIRECTORY/model.safetensors or the
 * index. */
const char *checkpoint_path(const struct checkpoint *checkpoint);

size_t checkpoint_count(const struct checkpoint *checkpoint);
const struct stored_tensor *checkpoint_at(const struct checkpoint *checkpoint, size_t index);
const struct stored_tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name);

#endif
