#include <stdlib.h>
#include <string.h>

#include "text/encoder.h"
#include "text/unicode.h"

/* text[begin..end) holds no raw added token. */
static bool encode_stretch(struct encoder *encoder, size_t begin, size_t end)
{
    return encoder->tokenizer->kind == TOKENIZER_BYTE_PAIR
               ? byte_pair_encode_stretch(encoder, begin, end)
               : word_piece_encode_stretch(encoder, begin, end);
}

static bool encode_text(struct encoder *encoder)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct added_search search = {0};
    struct added_match match;
    size_t done = 0;
    while (added_tokens_next(&tokenizer->raw, encoder->plain, encoder->text, encoder->size, &search,
                             &match)) {
        if (!encode_stretch(encoder, done, match.begin) ||
            !encoder_push_added(encoder, match.id, match.begin, match.end))
            return false;
        done = match.end;
    }
    return encode_stretch(encoder, done, encoder->size);
}

static bool encode_part(struct encoder *encoder, const struct tokenizer_input *input,
                        struct template_part part)
{
    if (part.kind == TEMPLATE_TOKEN) {
        struct token token = {part.id, part.type, -1, TOKEN_NO_WORD, 0, 0};
        return encoder_push_token(encoder, token);
    }
    bool is_pair = part.kind == TEMPLATE_PAIR;
    encoder->text = is_pair ? input->pair : input->text;
    encoder->size = is_pair ? input->pair_size : input->text_size;
    encoder->text_index = is_pair;
    encoder->type = part.type;
    return encode_text(encoder);
}

static bool check_text(const char *name, const char *text, size_t size, struct attn_error *error)
{
    /* Words are counted, and spans of the normalised text are kept, in 32 bits. */
    if (size > INT32_MAX)
        return attn_error_set(error, "%s has %zu bytes, expected at most %d", name, size,
                              INT32_MAX);
    size_t invalid = utf8_invalid_offset(text, size);
    return invalid == size || attn_error_set(error, "%s is not valid UTF-8: byte %zu is 0x%02x",
                                             name, invalid, (unsigned char)text[invalid]);
}

bool tokenizer_encode(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                      struct encoding *encoding, struct attn_error *error)
{
    memset(encoding, 0, sizeof *encoding);
    if (!check_text("the text", input->text, input->text_size, error) ||
        (input->pair && !check_text("the pair", input->pair, input->pair_size, error)))
        return false;

    struct encoder encoder = {
        .tokenizer = tokenizer,
        .encoding = encoding,
        .plain = input->specials == SPECIAL_PLAIN,
    };
    const struct sequence_template *sequence = input->pair ? &tokenizer->pair : &tokenizer->single;
    bool done = true;
    for (size_t i = 0; i < sequence->count && done; i++)
        done = encode_part(&encoder, input, sequence->parts[i]);
    normalized_text_release(&encoder.normalized);
    byte_pair_word_release(&encoder.split);
    free(encoder.prefixed);
    if (!done) {
        encoding_release(encoding);
        return attn_error_memory(error);
    }
    if (tokenizer->kind == TOKENIZER_BYTE_PAIR)
        byte_pair_finish(tokenizer, input, encoding);
    return true;
}

void encoding_release(struct encoding *encoding)
{
    free(encoding->tokens);
    free(encoding->words);
    memset(encoding, 0, sizeof *encoding);
}
