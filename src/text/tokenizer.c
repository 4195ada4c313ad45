#include "text/tokenizer.h"

#include <stdlib.h>

#include "base/file.h"
#include "text/tokenizer_parts.h"

bool tokenizer_add_token(struct tokenizer *tokenizer, const struct added_token *token,
                         bool normalized, const char *file, struct attn_error *error)
{
    if (!normalized)
        return added_tokens_push(&tokenizer->raw, token) || attn_error_memory(error);

    struct normalized_text normal = {0};
    struct added_token normal_token = *token;
    bool done = bert_normalize(&tokenizer->normalizer, token->spelling, 0, token->length, &normal);
    if (done && normal.size == 0) {
        attn_error_set(error, "%s: nothing is left of added token \"%s\" when it is normalized",
                       file, token->spelling);
        normalized_text_release(&normal);
        return false;
    }
    normal_token.spelling = normal.bytes;
    normal_token.length = normal.size;
    done = done && added_tokens_push(&tokenizer->normalized, &normal_token);
    normalized_text_release(&normal);
    return done || attn_error_memory(error);
}

bool tokenizer_seal(struct tokenizer *tokenizer, const char *file, struct attn_error *error)
{
    const struct added_token *repeated = added_tokens_seal(&tokenizer->raw);
    if (!repeated)
        repeated = added_tokens_seal(&tokenizer->normalized);
    return !repeated || attn_error_set(error, "%s: added_tokens has two tokens spelled \"%s\"",
                                       file, repeated->spelling);
}

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
