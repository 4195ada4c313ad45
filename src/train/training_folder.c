#include "train/training_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define LARGEST_FILE ((size_t)256 << 20)

static const char *const tokenizer_files[FOLDER_TOKENIZER_FILES] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
};

/* What makes a folder one that work is in; the first are what a training writes. */
static const char *const occupied_by[] = {
    "training.safetensors", "model.safetensors", "config.json",
    "training.csv",         "loss.svg",          "model.safetensors.index.json"};
enum { TRAINING_FILES = 5 };

static bool check_free(const char *path, struct attn_error *error)
{
    for (size_t i = 0; i < sizeof occupied_by / sizeof occupied_by[0]; i++) {
        char *file = attn_path_join(path, occupied_by[i]);
        bool exists = file && attn_path_exists(file);
        bool failed = !file;
        free(file);
        if (failed)
            return attn_error_memory(error);
        if (exists && i == 0)
            return attn_error_set(error,
                                  "%s: holds a training already; --resume %s goes on with it, -o "
                                  "takes another folder",
                                  path, path);
        if (exists)
            return attn_error_set(error, "%s: holds %s already; -o takes another folder", path,
                                  occupied_by[i]);
    }
    return true;
}

/* A lock of the folder itself leaves no file behind, whatever ends the process. */
static bool lock(struct training_folder *folder, struct attn_error *error)
{
    folder->file = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->file < 0)
        return attn_error_set(error, "%s: cannot be opened: %s", folder->path, strerror(errno));
    folder->locked = flock(folder->file, LOCK_EX | LOCK_NB) == 0;
    if (folder->locked)
        return true;
    int reason = errno;
    close(folder->file);
    /* A file system without locks cannot tell. */
    return reason != EWOULDBLOCK ||
           attn_error_set(error, "%s: another process trains in it", folder->path);
}

void training_folder_close(struct training_folder *folder)
{
    if (folder->locked)
        close(folder->file);
    folder->locked = false;
}

bool training_folder_reopen(struct training_folder *folder, const char *path,
                            struct attn_error *error)
{
    *folder = (struct training_folder){.path = path};
    return lock(folder, error);
}

bool training_folder_open(struct training_folder *folder, const char *path,
                          struct attn_error *error)
{
    *folder = (struct training_folder){.path = path};
    struct stat status;
    if (stat(path, &status) != 0) {
        folder->made = mkdir(path, 0777) == 0;
        folder->ours = folder->made;
        return folder->made
                   ? lock(folder, error)
                   : attn_error_set(error, "%s: cannot be made: %s", path, strerror(errno));
    }
    if (!S_ISDIR(status.st_mode))
        return attn_error_set(error, "%s: is a file, expected a folder", path);
    if (!lock(folder, error))
        return false;
    if (!check_free(path, error)) {
        training_folder_close(folder);
        return false;
    }
    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0) {
        attn_error_set(error, "%s: cannot be written to: %s", path, strerror(errno));
        training_folder_close(folder);
        return false;
    }
    folder->ours = true;
    return true;
}

static bool write_file(struct training_folder *folder, int which, const char *data, size_t size,
                       struct attn_error *error)
{
    char *path = attn_path_join(folder->path, tokenizer_files[which]);
    if (!path)
        return attn_error_memory(error);
    folder->written[which] = attn_file_write(path, data, size, error);
    free(path);
    return folder->written[which];
}

bool training_folder_add_tokenizer(struct training_folder *folder, const char *json, size_t size,
                                   struct attn_error *error)
{
    return write_file(folder, 0, json, size, error);
}

static bool copy_file(struct training_folder *folder, int which, const char *directory,
                      struct attn_error *error)
{
    char *source = attn_path_join(directory, tokenizer_files[which]);
    char *data = NULL;
    size_t size = 0;
    if (!source)
        return attn_error_memory(error);
    bool done =
        !attn_path_exists(source) || (attn_file_read(source, LARGEST_FILE, &data, &size, error) &&
                                      write_file(folder, which, data, size, error));
    free(data);
    free(source);
    return done;
}

bool training_folder_copy_tokenizer(struct training_folder *folder, const char *directory,
                                    struct attn_error *error)
{
    for (int i = 0; i < FOLDER_TOKENIZER_FILES; i++)
        if (!copy_file(folder, i, directory, error))
            return false;
    return true;
}

static void remove_file(const struct training_folder *folder, const char *name)
{
    char *path = attn_path_join(folder->path, name);
    if (path)
        unlink(path);
    free(path);
}

void training_folder_undo(struct training_folder *folder)
{
    for (int i = 0; i < FOLDER_TOKENIZER_FILES; i++)
        if (folder->written[i])
            remove_file(folder, tokenizer_files[i]);
    /* None of these was there. */
    for (int i = 0; folder->ours && i < TRAINING_FILES; i++)
        remove_file(folder, occupied_by[i]);
    if (folder->made)
        rmdir(folder->path);
    training_folder_close(folder);
    *folder = (struct training_folder){.path = folder->path};
}
