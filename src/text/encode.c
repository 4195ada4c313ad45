#include <stdlib.h>
#include <string.h>

#include "text/pre_tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

/* One call of tokenizer_encode. */
struct encoder {
    const struct tokenizer *tokenizer;
    struct encoding *encoding;
    size_t token_capacity, word_capacity;
    struct normalized_text normalized; /* of the stretch at hand */
    bool plain;                        /* special spellings are letters */

    const char *text; /* what is being encoded: */
    size_t size;
    int32_t text_index, type;
};

/* Room for one more element behind `count`. */
static bool grow(void **array, size_t count, size_t *capacity, size_t element_size)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 64;
    if (larger > SIZE_MAX / element_size)
        return false;
    void *grown = realloc(*array, larger * element_size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

static bool push_token(struct encoder *encoder, struct token token)
{
    struct encoding *encoding = encoder->encoding;
    void *tokens = encoding->tokens;
    if (!grow(&tokens, encoding->token_count, &encoder->token_capacity, sizeof token))
        return false;
    encoding->tokens = tokens;
    encoding->tokens[encoding->token_count++] = token;
    return true;
}

static bool push_word(struct encoder *encoder, size_t begin, size_t end)
{
    struct encoding *encoding = encoder->encoding;
    void *words = encoding->words;
    if (!grow(&words, encoding->word_count, &encoder->word_capacity, sizeof *encoding->words))
        return false;
    encoding->words = words;
    encoding->words[encoding->word_count++] = (struct word){encoder->text_index, begin, end};
    return true;
}

/* A token of the last word. */
static bool push_piece(struct encoder *encoder, int32_t id, size_t begin, size_t end)
{
    struct token token = {
        .id = id,
        .type = encoder->type,
        .text = encoder->text_index,
        .word = (int32_t)encoder->encoding->word_count - 1,
        .begin = begin,
        .end = end,
    };
    return push_token(encoder, token);
}

static bool push_added(struct encoder *encoder, int32_t id, size_t begin, size_t end)
{
    return push_word(encoder, begin, end) && push_piece(encoder, id, begin, end);
}

/* Cuts the normalised word bytes[begin..end) into pieces. */
static bool encode_word(struct encoder *encoder, size_t begin, size_t end)
{
    const struct word_piece *model = &encoder->tokenizer->model;
    const struct text_span *spans = encoder->normalized.spans + begin;
    const char *word = encoder->normalized.bytes + begin;
    size_t size = end - begin, first_token = encoder->encoding->token_count;

    if (!push_word(encoder, spans[0].begin, spans[size - 1].end))
        return false;
    bool known = word_piece_takes(model, word, size);
    for (size_t at = 0, next; known && at < size; at = next) {
        int32_t id = word_piece_next(model, word, size, at, &next);
        known = id != VOCABULARY_NO_ID;
        if (known && !push_piece(encoder, id, spans[at].begin, spans[next - 1].end))
            return false;
    }
    if (known)
        return true;
    encoder->encoding->token_count = first_token;
    return push_piece(encoder, model->unknown_id, spans[0].begin, spans[size - 1].end);
}

static bool encode_words(struct encoder *encoder, size_t begin, size_t end)
{
    size_t word_end;
    while (pre_tokenizer_next(encoder->normalized.bytes, end, &begin, &word_end)) {
        if (!encode_word(encoder, begin, word_end))
            return false;
        begin = word_end;
    }
    return true;
}

/* text[begin..end) holds no raw added token. */
static bool encode_stretch(struct encoder *encoder, size_t begin, size_t end)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct normalized_text *normalized = &encoder->normalized;
    if (!bert_normalize(&tokenizer->normalizer, encoder->text, begin, end, normalized))
        return false;

    struct added_search search = {0};
    struct added_match match;
    size_t done = 0;
    while (added_tokens_next(&tokenizer->normalized, encoder->plain, normalized->bytes,
                             normalized->size, &search, &match)) {
        if (!encode_words(encoder, done, match.begin) ||
            !push_added(encoder, match.id, normalized->spans[match.begin].begin,
                        normalized->spans[match.end - 1].end))
            return false;
        done = match.end;
    }
    return encode_words(encoder, done, normalized->size);
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
            !push_added(encoder, match.id, match.begin, match.end))
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
        return push_token(encoder, token);
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
    if (!done) {
        encoding_release(encoding);
        return attn_error_memory(error);
    }
    return true;
}

void encoding_release(struct encoding *encoding)
{
    free(encoding->tokens);
    free(encoding->words);
    memset(encoding, 0, sizeof *encoding);
}
