#include "model/model_source.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/config_fields.h"
#include "text/tokenizer_lists.h"

struct model_source {
    char *path;        /* of the directory or of the GGUF file */
    struct gguf *gguf; /* NULL for a directory */
};

/* The only *.gguf of a directory, its path in newly allocated memory; NULL where it has none. */
static bool find_gguf(const char *directory, char **path, struct attn_error *error)
{
    *path = NULL;
    DIR *folder = opendir(directory);
    if (!folder)
        return attn_error_set(error, "%s: the folder cannot be read", directory);
    bool valid = true;
    for (const struct dirent *entry; valid && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || !gguf_is_name(entry->d_name))
            continue;
        if (*path)
            valid = attn_error_set(error,
                                   "%s: holds several .gguf files and no " CONFIG_FILE_NAME
                                   "; give one of them",
                                   directory);
        else if (!(*path = attn_path_join(directory, entry->d_name)))
            valid = attn_error_memory(error);
    }
    closedir(folder);
    if (!valid) {
        free(*path);
        *path = NULL;
    }
    return valid;
}

static bool has_config(const char *directory, bool *there, struct attn_error *error)
{
    char *config = attn_path_join(directory, CONFIG_FILE_NAME);
    if (!config)
        return attn_error_memory(error);
    *there = attn_path_exists(config);
    free(config);
    return true;
}

/* A large model may be cut into files that each hold a part of its tensors. */
static bool check_whole(const struct gguf *gguf, struct attn_error *error)
{
    int64_t parts = 1;
    if (!gguf_integer(gguf, "split.count", GGUF_OPTIONAL, &parts, error))
        return false;
    return parts <= 1 ||
           attn_error_set(error,
                          "%s: is one of %lld parts of a model; split files are not supported",
                          gguf_path(gguf), (long long)parts);
}

bool model_source_open(struct model_source **source, const char *path, struct attn_error *error)
{
    *source = NULL;
    struct model_source *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);

    bool directory = attn_path_is_folder(path), config = false;
    char *inside = NULL;
    bool done = !directory ||
                (has_config(path, &config, error) && (config || find_gguf(path, &inside, error)));
    if (done && !(made->path = inside ? inside : strdup(path)))
        done = attn_error_memory(error);
    if (done && (inside || !directory))
        done = gguf_open(&made->gguf, made->path, error) && check_whole(made->gguf, error);
    if (!done) {
        model_source_close(made);
        return false;
    }
    *source = made;
    return true;
}

void model_source_close(struct model_source *source)
{
    if (!source)
        return;
    gguf_close(source->gguf);
    free(source->path);
    free(source);
}

const char *model_source_path(const struct model_source *source)
{
    return source->path;
}

const struct gguf *model_source_gguf(const struct model_source *source)
{
    return source->gguf;
}

static bool take_kind(void *user, const json_t *object, struct attn_error *error)
{
    enum model_kind *kind = user;
    const char *type;
    if (!config_text(object, "model_type", true, &type, error))
        return false;
    if (strcmp(type, "bert") == 0)
        *kind = MODEL_BERT;
    else if (strcmp(type, "gpt2") == 0)
        *kind = MODEL_GPT2;
    else if (strcmp(type, "llama") == 0)
        *kind = MODEL_LLAMA;
    else
        return attn_error_set(error,
                              CONFIG_FILE_NAME ": model_type %.64s is not supported, only bert, "
                                               "gpt2 and llama are",
                              type);
    return true;
}

static bool is_text(const struct gguf_string *string, const char *text)
{
    return string->size == strlen(text) && memcmp(string->text, text, string->size) == 0;
}

/* For "%.*s": so much of a string as a message shows. */
static int shown(const struct gguf_string *string)
{
    enum { LIMIT = 64 };
    return string->size < LIMIT ? (int)string->size : LIMIT;
}

static bool gguf_kind(const struct gguf *gguf, enum model_kind *kind, struct attn_error *error)
{
    struct gguf_string name;
    if (!gguf_text(gguf, "general.architecture", GGUF_REQUIRED, &name, error))
        return false;
    if (is_text(&name, "gpt2"))
        *kind = MODEL_GPT2;
    else if (is_text(&name, "llama"))
        *kind = MODEL_LLAMA;
    else
        return attn_error_set(
            error, "%s: general.architecture %.*s is not supported, only gpt2 and llama are",
            gguf_path(gguf), shown(&name), name.text);
    return true;
}

bool model_source_kind(const struct model_source *source, enum model_kind *kind,
                       struct attn_error *error)
{
    return source->gguf ? gguf_kind(source->gguf, kind, error)
                        : config_read(source->path, take_kind, kind, error);
}

/* What would make other ids of a text, where it is set. */
static bool check_flags(const struct gguf *gguf, struct attn_error *error)
{
    static const char *const keys[] = {"tokenizer.ggml.add_eos_token",
                                       "tokenizer.ggml.add_sep_token",
                                       "tokenizer.ggml.remove_extra_whitespaces"};
    for (size_t n = 0; n < sizeof keys / sizeof *keys; n++) {
        bool set = false;
        if (!gguf_bool(gguf, keys[n], GGUF_OPTIONAL, &set, error))
            return false;
        if (set)
            return attn_error_set(error, "%s: %s is true, which is not supported", gguf_path(gguf),
                                  keys[n]);
    }
    return true;
}

/* The token before every text, −1 where there is none. */
static bool read_first_id(const struct gguf *gguf, size_t token_count, int32_t *id,
                          struct attn_error *error)
{
    bool added = false;
    int64_t number = -1;
    if (!gguf_bool(gguf, "tokenizer.ggml.add_bos_token", GGUF_OPTIONAL, &added, error) ||
        (added &&
         !gguf_integer(gguf, "tokenizer.ggml.bos_token_id", GGUF_REQUIRED, &number, error)))
        return false;
    if (added && (number < 0 || (uint64_t)number >= token_count || number > INT32_MAX))
        return attn_error_set(
            error, "%s: tokenizer.ggml.bos_token_id is %lld, the vocabulary has %zu tokens",
            gguf_path(gguf), (long long)number, token_count);
    *id = (int32_t)number;
    return true;
}

/* An array of strings as the text room takes it. */
static bool read_spans(const struct gguf *gguf, const char *key, struct text_span **spans,
                       size_t *count, struct attn_error *error)
{
    struct gguf_string *strings;
    *spans = NULL;
    if (!gguf_texts(gguf, key, GGUF_REQUIRED, &strings, count, error))
        return false;
    *spans = malloc((*count + 1) * sizeof **spans); /* one more: an empty list is memory too */
    for (size_t n = 0; *spans && n < *count; n++)
        (*spans)[n] = (struct text_span){strings[n].text, strings[n].size};
    free(strings);
    return *spans || attn_error_memory(error);
}

static bool read_token_kinds(const struct gguf *gguf, size_t token_count, int32_t **kinds,
                             struct attn_error *error)
{
    size_t count;
    if (!gguf_integers(gguf, "tokenizer.ggml.token_type", GGUF_OPTIONAL, kinds, &count, error))
        return false;
    return !*kinds || count == token_count ||
           attn_error_set(error, "%s: tokenizer.ggml.token_type has %zu entries for %zu tokens",
                          gguf_path(gguf), count, token_count);
}

/* Names and flags, without the lists. */
static bool read_tokenizer_names(const struct gguf *gguf, struct tokenizer_lists *lists,
                                 struct attn_error *error)
{
    struct gguf_string model, splits;
    if (!gguf_text(gguf, "tokenizer.ggml.model", GGUF_REQUIRED, &model, error))
        return false;
    if (!is_text(&model, "gpt2"))
        return attn_error_set(error,
                              "%s: tokenizer.ggml.model %.*s is not supported, only gpt2 "
                              "(byte-level BPE) is",
                              gguf_path(gguf), shown(&model), model.text);
    if (!gguf_text(gguf, "tokenizer.ggml.pre", GGUF_REQUIRED, &splits, error) ||
        !gguf_bool(gguf, "tokenizer.ggml.add_space_prefix", GGUF_OPTIONAL, &lists->prefix_space,
                   error))
        return false;
    lists->splits = (struct text_span){splits.text, splits.size};
    return check_flags(gguf, error);
}

static bool gguf_tokenizer(const struct gguf *gguf, struct tokenizer **tokenizer,
                           struct attn_error *error)
{
    struct tokenizer_lists lists = {.file = gguf_path(gguf), .first_id = -1};
    struct text_span *tokens = NULL, *merges = NULL;
    int32_t *kinds = NULL;
    bool done = read_tokenizer_names(gguf, &lists, error) &&
                read_spans(gguf, "tokenizer.ggml.tokens", &tokens, &lists.token_count, error) &&
                read_spans(gguf, "tokenizer.ggml.merges", &merges, &lists.merge_count, error) &&
                read_token_kinds(gguf, lists.token_count, &kinds, error) &&
                read_first_id(gguf, lists.token_count, &lists.first_id, error);
    if (done) {
        lists.tokens = tokens;
        lists.merges = merges;
        lists.kinds = kinds;
        done = tokenizer_open_lists(tokenizer, &lists, error);
    }
    free(tokens);
    free(merges);
    free(kinds);
    return done;
}

bool model_source_tokenizer(const struct model_source *source, struct tokenizer **tokenizer,
                            struct attn_error *error)
{
    *tokenizer = NULL;
    if (source->gguf)
        return gguf_tokenizer(source->gguf, tokenizer, error);
    struct attn_error fault;
    if (tokenizer_open(tokenizer, source->path, &fault))
        return true;
    /* Some of its messages begin with the path, others with the file's name alone. */
    return strncmp(fault.message, source->path, strlen(source->path)) == 0
               ? attn_error_set(error, "%s", fault.message)
               : attn_error_set(error, "%s: %s", source->path, fault.message);
}
