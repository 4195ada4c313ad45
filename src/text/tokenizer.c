#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/tokenizer_parts.h"

/* The files that a tokenizer is read from. */
struct paths {
    char *json, *lines, *config, *vocabulary, *merges;
};

static bool read_files(struct tokenizer *tokenizer, const struct paths *paths,
                       const char *directory, struct attn_error *error)
{
    if (!paths->json || !paths->lines || !paths->config || !paths->vocabulary || !paths->merges)
        return attn_error_memory(error);
    if (attn_path_exists(paths->json))
        return tokenizer_read_json(tokenizer, paths->json, error);
    if (attn_path_exists(paths->lines))
        return tokenizer_read_vocabulary(tokenizer, paths->lines, paths->config, error);
    if (attn_path_exists(paths->vocabulary))
        return tokenizer_read_merges(tokenizer, paths->vocabulary, paths->merges, paths->config,
                                     error);
    return attn_error_set(
        error, "%s has neither tokenizer.json nor vocab.txt, nor vocab.json with merges.txt",
        directory);
}

static bool read_directory(struct tokenizer *tokenizer, const char *directory,
                           struct attn_error *error)
{
    struct paths paths = {
        .json = attn_path_join(directory, "tokenizer.json"),
        .lines = attn_path_join(directory, "vocab.txt"),
        .config = attn_path_join(directory, "tokenizer_config.json"),
        .vocabulary = attn_path_join(directory, "vocab.json"),
        .merges = attn_path_join(directory, "merges.txt"),
    };
    bool done = read_files(tokenizer, &paths, directory, error);
    free(paths.json);
    free(paths.lines);
    free(paths.config);
    free(paths.vocabulary);
    free(paths.merges);
    return done;
}

bool tokenizer_open(struct tokenizer **tokenizer, const char *directory, struct attn_error *error)
{
    *tokenizer = NULL;
    struct tokenizer *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    if (!read_directory(opened, directory, error)) {
        tokenizer_close(opened);
        return false;
    }
    *tokenizer = opened;
    return true;
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    added_tokens_release(&tokenizer->raw);
    added_tokens_release(&tokenizer->normalized);
    word_piece_release(&tokenizer->word_piece);
    byte_pair_release(&tokenizer->byte_pair);
    free(tokenizer->added_kinds);
    sequence_template_release(&tokenizer->single);
    sequence_template_release(&tokenizer->pair);
    free(tokenizer);
}

const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t id)
{
    return vocabulary_spelling(tokenizer->vocabulary, id);
}

int32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary->size;
}

enum tokenizer_kind tokenizer_get_kind(const struct tokenizer *tokenizer)
{
    return tokenizer->kind;
}

static int32_t find_added(const struct tokenizer *tokenizer, const struct added_tokens *set,
                          const char *spelling)
{
    for (size_t i = 0; i < set->count; i++) {
        int32_t id = set->tokens[i].id;
        if (strcmp(vocabulary_spelling(tokenizer->vocabulary, id), spelling) == 0)
            return id;
    }
    return VOCABULARY_NO_ID;
}

int32_t tokenizer_special(const struct tokenizer *tokenizer, const char *spelling)
{
    int32_t id = find_added(tokenizer, &tokenizer->raw, spelling);
    return id != VOCABULARY_NO_ID ? id : find_added(tokenizer, &tokenizer->normalized, spelling);
}
