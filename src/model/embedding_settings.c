/* What a sentence-transformers directory says about pooling: modules.json lists the modules of the
 * model in order, each with the folder of its own config.json. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"
#include "model/embedding.h"

#define MODULES_FILE "modules.json"

enum { FILE_LIMIT = 1 << 20 }; /* bytes; real ones have a few hundred */

/* "Pooling" of "sentence_transformers.models.Pooling"; NULL where the module names no type. */
static const char *module_class(const json_t *module)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type;
}

/* The folder of the pooling module, and whether a normalisation follows. */
static bool read_order(const json_t *modules, const char **pooling_folder, bool *normalize,
                       struct attn_error *error)
{
    *pooling_folder = NULL;
    *normalize = false;
    for (size_t n = 0; n < json_array_size(modules); n++) {
        const json_t *module = json_array_get(modules, n);
        const char *class = module_class(module);
        if (!class)
            return attn_error_set(error, MODULES_FILE ": module %zu has no type", n);

        if (strcmp(class, "Transformer") == 0 && n == 0)
            continue;
        if (strcmp(class, "Pooling") == 0 && n == 1)
            *pooling_folder = json_string_value(json_object_get(module, "path"));
        else if (strcmp(class, "Normalize") == 0 && n == 2)
            *normalize = true;
        else
            return attn_error_set(error,
                                  MODULES_FILE ": %.64s as module %zu is not supported, only "
                                               "Transformer, Pooling, Normalize in this order are",
                                  class, n);
    }
    if (!*pooling_folder)
        return attn_error_set(error, MODULES_FILE " names no folder of a Pooling module");
    if (strchr(*pooling_folder, '/') || strcmp(*pooling_folder, "..") == 0)
        return attn_error_set(error, MODULES_FILE ": path %.64s is not a folder of the model",
                              *pooling_folder);
    return true;
}

/* A mode by the name that newer files use. */
static bool mode_from_name(const char *path, const char *name, enum pooling *pooling,
                           struct attn_error *error)
{
    if (strcmp(name, "mean") == 0)
        *pooling = POOLING_MEAN;
    else if (strcmp(name, "cls") == 0)
        *pooling = POOLING_CLS;
    else
        return attn_error_set(
            error, "%s: pooling_mode %.64s is not supported, only mean and cls are", path, name);
    return true;
}

/* Older files have one switch a mode, "pooling_mode_mean_tokens": true and so on. */
static bool mode_from_switches(const char *path, json_t *config, enum pooling *pooling,
                               struct attn_error *error)
{
    static const char prefix[] = "pooling_mode_";
    int found = 0;
    const char *name;
    json_t *value;
    json_object_foreach (config, name, value) {
        if (strncmp(name, prefix, strlen(prefix)) != 0 || json_is_false(value))
            continue;
        if (!json_is_true(value))
            return attn_error_set(error, "%s: %.64s is neither true nor false", path, name);
        if (strcmp(name, "pooling_mode_mean_tokens") == 0)
            *pooling = POOLING_MEAN;
        else if (strcmp(name, "pooling_mode_cls_token") == 0)
            *pooling = POOLING_CLS;
        else
            return attn_error_set(error,
                                  "%s: %.64s is not supported, only pooling_mode_mean_tokens and "
                                  "pooling_mode_cls_token are",
                                  path, name);
        found++;
    }
    if (found != 1)
        return attn_error_set(error, "%s: %d pooling modes are set, expected exactly one", path,
                              found);
    return true;
}

static bool read_pooling(const char *directory, const char *folder, enum pooling *pooling,
                         struct attn_error *error)
{
    char *inside = attn_path_join(directory, folder);
    char *path = inside ? attn_path_join(inside, "config.json") : NULL;
    free(inside);
    if (!path)
        return attn_error_memory(error);

    json_t *config;
    bool done = attn_json_read_object(path, FILE_LIMIT, &config, error);
    if (done) {
        const json_t *mode = json_object_get(config, "pooling_mode");
        if (!mode)
            done = mode_from_switches(path, config, pooling, error);
        else if (json_is_string(mode))
            done = mode_from_name(path, json_string_value(mode), pooling, error);
        else
            done = attn_error_set(error, "%s: pooling_mode is not one name", path);
        json_decref(config);
    }
    free(path);
    return done;
}

bool embedding_settings_read(struct embedding_settings *settings, const char *directory,
                             struct attn_error *error)
{
    *settings = (struct embedding_settings){POOLING_MEAN, true};
    char *path = attn_path_join(directory, MODULES_FILE);
    if (!path)
        return attn_error_memory(error);
    bool done = true;
    if (attn_path_exists(path)) {
        json_t *modules;
        const char *folder;
        done = attn_json_read_array(path, FILE_LIMIT, &modules, error) &&
               read_order(modules, &folder, &settings->normalize, error) &&
               read_pooling(directory, folder, &settings->pooling, error);
        json_decref(modules);
    }
    free(path);
    return done;
}
