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
