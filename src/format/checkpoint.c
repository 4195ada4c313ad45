#include "format/checkpoint.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"
#include "format/safetensors.h"

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

enum { INDEX_LIMIT = 100 * 1000 * 1000 };

struct shard {
    char *name;
    struct safetensors *file;
};

struct checkpoint {
    char *path; /* of the single file or of the index */
    struct shard *shards;
    size_t shard_count;
    const struct stored_tensor **tensors; /* [count], by name */
    size_t count;
};

/* False only where there is no memory for the question. */
static bool look_for(const char *directory, const char *name, bool *exists,
                     struct attn_error *error)
{
    char *path = attn_path_join(directory, name);
    if (!path)
        return attn_error_memory(error);
    *exists = attn_path_exists(path);
    free(path);
    return true;
}

static bool keep_path(struct checkpoint *checkpoint, const char *directory, const char *name,
                      struct attn_error *error)
{
    checkpoint->path = attn_path_join(directory, name);
    return checkpoint->path || attn_error_memory(error);
}

static bool open_in(struct safetensors **file, const char *directory, const char *name,
                    struct attn_error *error)
{
    char *path = attn_path_join(directory, name);
    if (!path)
        return attn_error_memory(error);
    bool opened = safetensors_open(file, path, error);
    free(path);
    return opened;
}

/* Room for as many tensors and shards as could come. */
static bool reserve(struct checkpoint *checkpoint, size_t tensors, size_t shards,
                    struct attn_error *error)
{
    checkpoint->tensors = calloc(tensors + 1, sizeof *checkpoint->tensors);
    checkpoint->shards = calloc(shards + 1, sizeof *checkpoint->shards);
    return (checkpoint->tensors && checkpoint->shards) || attn_error_memory(error);
}

static bool open_single(struct checkpoint *checkpoint, const char *directory,
                        struct attn_error *error)
{
    struct safetensors *file;
    if (!keep_path(checkpoint, directory, single_name, error) ||
        !safetensors_open(&file, checkpoint->path, error))
        return false;
    if (!reserve(checkpoint, safetensors_count(file), 1, error)) {
        safetensors_close(file);
        return false;
    }
    checkpoint->shards[checkpoint->shard_count++].file = file;
    for (; checkpoint->count < safetensors_count(file); checkpoint->count++)
        checkpoint->tensors[checkpoint->count] = safetensors_at(file, checkpoint->count);
    return true;
}

/* Whether a relative path could name something outside of the folder that it starts from. */
static bool leaves_directory(const char *name)
{
    if (name[0] == '/')
        return true;
    for (const char *component = name; component;) {
        size_t size = strcspn(component, "/");
        if (size == 2 && memcmp(component, "..", 2) == 0)
            return true;
        component = component[size] ? component + size + 1 : NULL;
    }
    return false;
}

/* Checks the whole map before anything that it names is opened. */
static bool check_weight_map(const json_t *index, const char *path, struct attn_error *error)
{
    json_t *map = json_object_get(index, "weight_map");
    if (!json_is_object(map))
        return attn_error_set(error, "%s has no weight_map", path);
    const char *tensor;
    json_t *value;
    json_object_foreach (map, tensor, value) {
        const char *shard = json_string_value(value);
        if (!shard || !*shard)
            return attn_error_set(error, "%s: tensor %.160s has no shard name", path, tensor);
        if (leaves_directory(shard))
            return attn_error_set(error, "%s: shard name %.160s leaves the directory", path, shard);
    }
    return true;
}

/* The shard of this name, opened at its first use; NULL on failure. */
static const struct safetensors *find_shard(struct checkpoint *checkpoint, const char *directory,
                                            const char *name, struct attn_error *error)
{
    /* Neighbours in the index mostly share a shard: the last one opened comes first. */
    for (size_t i = checkpoint->shard_count; i-- > 0;)
        if (strcmp(checkpoint->shards[i].name, name) == 0)
            return checkpoint->shards[i].file;
    struct shard shard = {.name = strdup(name)};
    if (!shard.name) {
        attn_error_memory(error);
        return NULL;
    }
    if (!open_in(&shard.file, directory, name, error)) {
        free(shard.name);
        return NULL;
    }
    checkpoint->shards[checkpoint->shard_count++] = shard;
    return shard.file;
}

static bool open_map(struct checkpoint *checkpoint, const char *directory, json_t *map,
                     struct attn_error *error)
{
    if (!reserve(checkpoint, json_object_size(map), json_object_size(map), error))
        return false;
    const char *name;
    json_t *value;
    json_object_foreach (map, name, value) {
        const char *shard_name = json_string_value(value);
        const struct safetensors *shard = find_shard(checkpoint, directory, shard_name, error);
        if (!shard)
            return false;
        const struct stored_tensor *tensor = safetensors_find(shard, name);
        if (!tensor)
            return attn_error_set(error, "%s/%.160s has no tensor %.160s, which %s promises",
                                  directory, shard_name, name, index_name);
        checkpoint->tensors[checkpoint->count++] = tensor;
    }
    return true;
}

static bool open_sharded(struct checkpoint *checkpoint, const char *directory,
                         struct attn_error *error)
{
    json_t *index;
    if (!keep_path(checkpoint, directory, index_name, error) ||
        !attn_json_read_object(checkpoint->path, INDEX_LIMIT, &index, error))
        return false;
    bool opened = check_weight_map(index, checkpoint->path, error) &&
                  open_map(checkpoint, directory, json_object_get(index, "weight_map"), error);
    json_decref(index);
    return opened;
}

static bool open_any(struct checkpoint *checkpoint, const char *directory, struct attn_error *error)
{
    bool sharded = false, single = false, pickled = false;
    if (!look_for(directory, index_name, &sharded, error) ||
        !look_for(directory, single_name, &single, error) ||
        !look_for(directory, "pytorch_model.bin", &pickled, error))
        return false;
    if (sharded)
        return open_sharded(checkpoint, directory, error);
    if (single)
        return open_single(checkpoint, directory, error);
    if (!attn_path_exists(directory))
        return attn_error_set(error, "%s: no such folder", directory);
    return attn_error_set(error, "%s has neither %s nor %s%s", directory, single_name, index_name,
                          pickled ? "; its pytorch_model.bin must be converted to safetensors"
                                  : "");
}

bool checkpoint_open(struct checkpoint **checkpoint, const char *directory,
                     struct attn_error *error)
{
    *checkpoint = NULL;
    struct checkpoint *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    if (!open_any(opened, directory, error)) {
        checkpoint_close(opened);
        return false;
    }
    stored_tensors_sort(opened->tensors, opened->count);
    *checkpoint = opened;
    return true;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->shard_count; i++) {
        safetensors_close(checkpoint->shards[i].file);
        free(checkpoint->shards[i].name);
    }
    free(checkpoint->shards);
    free(checkpoint->tensors);
    free(checkpoint->path);
    free(checkpoint);
}

const char *checkpoint_path(const struct checkpoint *checkpoint)
{
    return checkpoint->path;
}

size_t checkpoint_count(const struct checkpoint *checkpoint)
{
    return checkpoint->count;
}

const struct stored_tensor *checkpoint_at(const struct checkpoint *checkpoint, size_t index)
{
    return checkpoint->tensors[index];
}

const struct stored_tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name)
{
    return stored_tensors_find(checkpoint->tensors, checkpoint->count, name);
}
