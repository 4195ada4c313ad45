#include "text/tokenizer.h"

#include <stdlib.h>

#include "base/file.h"
#include "text/tokenizer_parts.h"

static bool read_directory(struct tokenizer *tokenizer, const char *directory,
                           struct attn_error *error)
{
    char *json = attn_path_join(directory, "tokenizer.json");
    char *vocabulary = attn_path_join(directory, "vocab.txt");
    char *config = attn_path_join(directory, "tokenizer_config.json");
    bool done;
    if (!json || !vocabulary || !config)
        done = attn_error_memory(error);
    else if (attn_path_exists(json))
        done = tokenizer_read_json(tokenizer, json, error);
    else if (attn_path_exists(vocabulary))
        done = tokenizer_read_vocabulary(tokenizer, vocabulary, config, error);
    else
        done = attn_error_set(error, "%s has neither tokenizer.json nor vocab.txt", directory);
    free(json);
    free(vocabulary);
    free(config);
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
    word_piece_release(&tokenizer->model);
    sequence_template_release(&tokenizer->single);
    sequence_template_release(&tokenizer->pair);
    free(tokenizer);
}

const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t id)
{
    return vocabulary_spelling(&tokenizer->model.vocabulary, id);
}

int32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->model.vocabulary.size;
}
