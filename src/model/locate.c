#define _XOPEN_SOURCE 700 /* realpath */
#include "model/locate.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "format/gguf.h"

/* What stands for a model that the user does not name. */
static const struct default_model {
    const char *name;
    const char *variable; /* of the environment, which names another */
    const char *fetch_command;
} default_models[] = {
    [MODEL_FOR_LOOKING] = {MODEL_DEFAULT_NAME, "ATTN_MODEL", MODEL_FETCH_COMMAND},
    [MODEL_FOR_WRITING] = {MODEL_DEFAULT_GENERATOR, "ATTN_GENERATOR",
                           MODEL_FETCH_GENERATOR_COMMAND},
};

/* The last component in newly allocated memory; NULL when there is none. */
static char *last_component(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    if (begin == end)
        begin = 0; /* the root */
    return strndup(path + begin, end - begin);
}

/* What to call the model in a folder: its last component, also of ".", ".." and a trailing "/..".
 */
static char *folder_name(const char *directory)
{
    char *name = last_component(directory);
    if (!name || (strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
        return name;
    char *absolute = realpath(directory, NULL);
    if (!absolute)
        return name;
    free(name);
    name = last_component(absolute);
    free(absolute);
    return name;
}

/* The value of a variable that holds an absolute path; the XDG specification has others ignored. */
static const char *absolute_path_variable(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] == '/' ? value : NULL;
}

/* BASE + SUFFIX in newly allocated memory; where `base` is NULL, $HOME + HOME_SUFFIX. */
static char *user_folder(const char *base, const char *suffix, const char *home_suffix)
{
    const char *home = getenv("HOME");
    struct attn_buffer path = {0};
    attn_buffer_add_text(&path, base ? base : home ? home : "");
    attn_buffer_add_text(&path, base ? suffix : home_suffix);
    if (path.failed)
        attn_buffer_release(&path);
    return path.data;
}

static char *data_folder(void)
{
    return user_folder(absolute_path_variable("XDG_DATA_HOME"), "/attn/models",
                       "/.local/share/attn/models");
}

static char *cache_folder(void)
{
    const char *cache = getenv("HF_HUB_CACHE");
    if (cache && *cache)
        return user_folder(cache, "", "");
    const char *home = getenv("HF_HOME");
    if (home && *home)
        return user_folder(home, "/hub", "");
    return user_folder(absolute_path_variable("XDG_CACHE_HOME"), "/huggingface/hub",
                       "/.cache/huggingface/hub");
}

/* Letters, digits, '-', '_' and '.', without a '.' in front: no such name leads out of a folder. */
static bool is_plain_name(const char *name, size_t size)
{
    if (size == 0 || name[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
            return false;
    return true;
}

/* The revision that refs/main of a cached repository names, in newly allocated memory; NULL without
 * an error where there is no such file. */
static bool read_main_revision(const char *repository, char **revision, struct attn_error *error)
{
    enum { REVISION_LIMIT = 256 };
    *revision = NULL;
    char *path = attn_path_join(repository, "refs/main");
    if (!path)
        return attn_error_memory(error);
    if (!attn_path_exists(path)) {
        free(path);
        return true;
    }
    char *text;
    size_t size;
    bool read = attn_file_read(path, REVISION_LIMIT, &text, &size, error);
    if (read) {
        while (size > 0 && isspace((unsigned char)text[size - 1]))
            size--;
        text[size] = '\0';
        if (is_plain_name(text, size)) {
            *revision = text;
        } else {
            read = attn_error_set(error, "%s: holds no revision", path);
            free(text);
        }
    }
    free(path);
    return read;
}

/* The only folder in `snapshots`, its name in newly allocated memory. */
static bool find_only_snapshot(const char *snapshots, char **revision, struct attn_error *error)
{
    *revision = NULL;
    DIR *folder = opendir(snapshots);
    if (!folder)
        return attn_error_set(error, "%s: no such folder, expected a downloaded model", snapshots);
    bool valid = true;
    for (const struct dirent *entry; valid && (entry = readdir(folder));) {
        if (!is_plain_name(entry->d_name, strlen(entry->d_name)))
            continue;
        if (*revision)
            valid = attn_error_set(error,
                                   "%s holds several snapshots and refs/main names none; "
                                   "give the folder of one",
                                   snapshots);
        else if (!(*revision = strdup(entry->d_name)))
            valid = attn_error_memory(error);
    }
    closedir(folder);
    if (valid && !*revision)
        valid = attn_error_set(error, "%s holds no snapshot", snapshots);
    if (!valid) {
        free(*revision);
        *revision = NULL;
    }
    return valid;
}

static bool find_snapshot(const char *repository, char **directory, struct attn_error *error)
{
    char *snapshots = attn_path_join(repository, "snapshots");
    if (!snapshots)
        return attn_error_memory(error);
    char *revision;
    bool found = read_main_revision(repository, &revision, error);
    if (found && !revision)
        found = find_only_snapshot(snapshots, &revision, error);
    if (found) {
        *directory = attn_path_join(snapshots, revision);
        if (!*directory)
            found = attn_error_memory(error);
        else if (!attn_path_is_folder(*directory))
            found = attn_error_set(error, "%s: no such folder, expected the snapshot", *directory);
    }
    free(revision);
    free(snapshots);
    return found;
}

/* ORG/NAME in the Hugging Face cache; `slash` points into the request. */
static bool find_cached(const char *request, const char *slash, char **directory,
                        struct attn_error *error)
{
    if (!is_plain_name(request, (size_t)(slash - request)) ||
        !is_plain_name(slash + 1, strlen(slash + 1)))
        return attn_error_set(error, "model %s: no such folder, and no name of the form ORG/NAME",
                              request);
    char *cache = cache_folder();
    struct attn_buffer repository = {0};
    attn_buffer_add_text(&repository, cache ? cache : "");
    attn_buffer_format(&repository, "/models--%.*s--%s", (int)(slash - request), request,
                       slash + 1);
    bool found;
    if (!cache || repository.failed)
        found = attn_error_memory(error);
    else if (!attn_path_is_folder(repository.data))
        found = attn_error_set(error, "model %s: there is neither a folder of this name nor %s",
                               request, repository.data);
    else
        found = find_snapshot(repository.data, directory, error);
    attn_buffer_release(&repository);
    free(cache);
    return found;
}

/* A folder or a GGUF file on the disk as the user wrote it. */
static bool take_path(const char *request, char **path, struct attn_error *error)
{
    bool there = attn_path_exists(request), gguf = gguf_is_name(request);
    if (there && !gguf && !attn_path_is_folder(request))
        return attn_error_set(error, "model %s: is a file, expected a folder or a .gguf file",
                              request);
    if (!there)
        return attn_error_set(error, "model %s: no such %s", request, gguf ? "file" : "folder");
    *path = strdup(request);
    return *path || attn_error_memory(error);
}

/* NAME is neither installed nor here. */
static bool tell_missing(const char *request, const char *installed,
                         const struct default_model *fallback, struct attn_error *error)
{
    for (size_t n = 0; n < sizeof default_models / sizeof *default_models; n++)
        if (strcmp(request, default_models[n].name) == 0)
            return attn_error_set(error, "model %s is not there (looked for %s); fetch it with %s",
                                  request, installed, default_models[n].fetch_command);
    return attn_error_set(error,
                          "model %s: there is neither %s nor a folder %s here; %s fetches %s",
                          request, installed, request, fallback->fetch_command, fallback->name);
}

/* NAME among the installed models, else a folder or file of that name here. */
static bool find_installed(const char *request, const struct default_model *fallback, char **path,
                           struct attn_error *error)
{
    char *models = data_folder();
    char *installed = models ? attn_path_join(models, request) : NULL;
    bool found;
    if (!installed)
        found = attn_error_memory(error);
    else if (attn_path_is_folder(installed)) {
        *path = installed;
        installed = NULL;
        found = true;
    } else if (attn_path_exists(request) || gguf_is_name(request))
        found = take_path(request, path, error);
    else
        found = tell_missing(request, installed, fallback, error);
    free(installed);
    free(models);
    return found;
}

static bool find_model(const char *request, const struct default_model *fallback, char **path,
                       struct attn_error *error)
{
    if (request[0] == '/' || request[0] == '.')
        return take_path(request, path, error);
    const char *slash = strchr(request, '/');
    if (!slash)
        return find_installed(request, fallback, path, error);
    if (attn_path_exists(request) || gguf_is_name(request))
        return take_path(request, path, error);
    return find_cached(request, slash, path, error);
}

bool model_locate(enum model_purpose purpose, const char *request, char **path, char **name,
                  struct attn_error *error)
{
    const struct default_model *fallback = &default_models[purpose];
    *path = NULL;
    *name = NULL;
    if (!request || !*request)
        request = getenv(fallback->variable);
    if (!request || !*request)
        request = fallback->name;

    bool found = find_model(request, fallback, path, error);
    if (found) {
        *name = folder_name(request);
        found = *name || attn_error_memory(error);
    }
    if (!found) {
        free(*path);
        *path = NULL;
    }
    return found;
}
