#include "text/encoder.h"

#include "text/array.h"

bool encoder_push_token(struct encoder *encoder, struct token token)
{
    struct encoding *encoding = encoder->encoding;
    struct token *tokens =
        array_grow(encoding->tokens, encoding->token_count, &encoder->token_capacity, sizeof token);
    if (!tokens)
        return false;
    encoding->tokens = tokens;
    encoding->tokens[encoding->token_count++] = token;
    return true;
}

bool encoder_push_word(struct encoder *encoder, size_t begin, size_t end)
{
    struct encoding *encoding = encoder->encoding;
    struct word *words =
        array_grow(encoding->words, encoding->word_count, &encoder->word_capacity, sizeof *words);
    if (!words)
        return false;
    encoding->words = words;
    encoding->words[encoding->word_count++] = (struct word){encoder->text_index, begin, end};
    return true;
}

bool encoder_push_piece(struct encoder *encoder, int32_t id, size_t begin, size_t end)
{
    struct token token = {
        .id = id,
        .type = encoder->type,
        .text = encoder->text_index,
        .word = (int32_t)encoder->encoding->word_count - 1,
        .begin = begin,
        .end = end,
    };
    return encoder_push_token(encoder, token);
}

bool encoder_push_added(struct encoder *encoder, int32_t id, size_t begin, size_t end)
{
    return encoder_push_word(encoder, begin, end) && encoder_push_piece(encoder, id, begin, end);
}
