#include "heads_texts.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/file_error.h"
#include "text/encoding_truncate.h"

/* Names in a folder, and then their paths. */
struct path_list {
    char **paths;
    size_t count, capacity;
};

static void path_list_release(struct path_list *list)
{
    for (size_t n = 0; n < list->count; n++)
        free(list->paths[n]);
    free(list->paths);
}

static bool add_path(struct path_list *list, char *path)
{
    if (path && list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        char **grown = realloc(list->paths, capacity * sizeof *grown);
        if (grown) {
            list->paths = grown;
            list->capacity = capacity;
        }
    }
    if (!path || list->count == list->capacity) {
        free(path);
        return false;
    }
    list->paths[list->count++] = path;
    return true;
}

static bool is_text_file(const char *path)
{
    static const char suffix[] = ".txt";
    const size_t length = strlen(path), end = sizeof suffix - 1;
    struct stat status;
    return length >= end && strcmp(path + length - end, suffix) == 0 && stat(path, &status) == 0 &&
           S_ISREG(status.st_mode);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_folder(const char *folder, struct path_list *list, struct attn_error *error)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return attn_file_error(error, folder, "read", errno);
    bool done = true;
    int fault = 0;
    while (done) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            fault = errno;
            break;
        }
        char *path = attn_path_join(folder, entry->d_name);
        if (path && !is_text_file(path))
            free(path);
        else
            done = add_path(list, path);
    }
    closedir(directory);
    if (!done)
        return attn_error_memory(error);
    if (fault != 0)
        return attn_file_error(error, folder, "read", fault);
    if (list->count == 0)
        return attn_error_set(error, "%s: has no file whose name ends with .txt", folder);
    qsort(list->paths, list->count, sizeof *list->paths, compare_paths);
    return true;
}

static bool fit(const struct session *session, const char *name, bool truncate,
                struct encoding *encoding, struct attn_error *error)
{
    const size_t positions = (size_t)session->settings.positions;
    if (encoding->token_count <= positions)
        return true;
    if (!truncate)
        return attn_error_set(error,
                              "%s has %zu tokens, the model has %zu positions; --truncate cuts it",
                              name, encoding->token_count, positions);
    encoding_truncate(encoding, positions);
    return true;
}

/* The next text, from a file or the operand. */
static bool add_text(const struct shared_options *source, bool truncate,
                     const struct session *session, struct heads_texts *texts,
                     struct attn_error *error)
{
    struct input input;
    if (!input_read(source, INPUT_ONE_TEXT, &input, error))
        return false;
    struct encoding encoding;
    char name[256];
    input_describe(&input, 0, name, sizeof name);
    bool done = session_encode(session, &input.texts[0], name, NULL, &encoding, error);
    if (done) {
        session_tell_dropped("heads", name, &encoding);
        heads_drop_words(&encoding);
        done = fit(session, name, truncate, &encoding, error);
        texts->encodings[texts->count++] = encoding;
    }
    input_release(&input);
    return done;
}

static bool make_room(struct heads_texts *texts, size_t count, struct attn_error *error)
{
    texts->encodings = calloc(count, sizeof *texts->encodings);
    return texts->encodings || attn_error_memory(error);
}

bool heads_texts_read(const struct heads_options *options, const struct session *session,
                      struct heads_texts *texts, struct attn_error *error)
{
    *texts = (struct heads_texts){0};
    struct shared_options source = options->shared;
    if (!source.file || !attn_path_is_folder(source.file))
        return make_room(texts, 1, error) &&
               add_text(&source, options->truncate, session, texts, error);
    struct path_list list = {0};
    bool done = list_folder(source.file, &list, error) && make_room(texts, list.count, error);
    for (size_t n = 0; done && n < list.count; n++) {
        source.file = list.paths[n];
        done = add_text(&source, options->truncate, session, texts, error);
    }
    path_list_release(&list);
    return done;
}

void heads_drop_words(struct encoding *encoding)
{
    free(encoding->words);
    encoding->words = NULL;
    encoding->word_count = 0;
}

void heads_texts_release(struct heads_texts *texts)
{
    for (size_t n = 0; n < texts->count; n++)
        encoding_release(&texts->encodings[n]);
    free(texts->encodings);
    *texts = (struct heads_texts){0};
}
