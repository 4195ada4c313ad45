#include "text/tokenizer_parts.h"

#include <stdlib.h>

void tokenizer_set_kind(struct tokenizer *tokenizer, enum tokenizer_kind kind)
{
    tokenizer->kind = kind;
    tokenizer->vocabulary = kind == TOKENIZER_BYTE_PAIR ? &tokenizer->byte_pair.vocabulary
                                                        : &tokenizer->word_piece.vocabulary;
}

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

static void note_kinds(unsigned char *kinds, const struct added_tokens *set)
{
    for (size_t i = 0; i < set->count; i++)
        kinds[set->tokens[i].id] = set->tokens[i].special ? ADDED_SPECIAL : ADDED_TOKEN;
}

bool tokenizer_seal(struct tokenizer *tokenizer, const char *file, struct attn_error *error)
{
    const struct added_token *repeated = added_tokens_seal(&tokenizer->raw);
    if (!repeated)
        repeated = added_tokens_seal(&tokenizer->normalized);
    if (repeated)
        return attn_error_set(error, "%s: added_tokens has two tokens spelled \"%s\"", file,
                              repeated->spelling);
    size_t size = (size_t)tokenizer->vocabulary->size;
    tokenizer->added_kinds = calloc(size ? size : 1, sizeof *tokenizer->added_kinds);
    if (!tokenizer->added_kinds)
        return attn_error_memory(error);
    note_kinds(tokenizer->added_kinds, &tokenizer->raw);
    note_kinds(tokenizer->added_kinds, &tokenizer->normalized);
    return true;
}
