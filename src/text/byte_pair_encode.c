#include <stdlib.h>
#include <string.h>

#include "text/encoder.h"
#include "text/unicode.h"

/* What is split into words: a stretch of the text, with a space in front of it or without. */
struct stretch {
    const char *bytes;
    size_t size;
    size_t begin; /* of the stretch in the text */
    bool prefixed;
};

/* The byte of the text that is the stretch's byte `at`. The space in front stands, as in the
 * reference, where the first character does. */
static size_t place_in_text(const struct stretch *stretch, size_t at)
{
    return stretch->begin + at - (stretch->prefixed && at > 0 ? 1 : 0);
}

static bool is_inside_character(const char *text, size_t size, size_t at)
{
    return at < size && ((unsigned char)text[at] & 0xC0) == 0x80;
}

/* A piece may begin or end inside a character; its place in the text has characters whole. */
static bool push_piece(struct encoder *encoder, const struct stretch *stretch, int32_t id,
                       size_t begin, size_t end)
{
    size_t first = place_in_text(stretch, begin), behind = place_in_text(stretch, end - 1) + 1;
    while (is_inside_character(encoder->text, encoder->size, first))
        first--;
    while (is_inside_character(encoder->text, encoder->size, behind))
        behind++;
    return encoder_push_piece(encoder, id, first, behind);
}

static void note_dropped(struct encoding *encoding, const struct byte_pair_word *split)
{
    if (encoding->dropped_count == 0)
        encoding->first_dropped = split->first_dropped;
    encoding->dropped_count += split->dropped_count;
}

static bool encode_word(struct encoder *encoder, const struct stretch *stretch, size_t begin,
                        size_t end)
{
    struct byte_pair_word *split = &encoder->split;
    if (!byte_pair_split(&encoder->tokenizer->byte_pair, stretch->bytes + begin, end - begin,
                         split))
        return false;
    note_dropped(encoder->encoding, split);
    if (split->count == 0) /* the vocabulary has none of its bytes */
        return true;
    if (!encoder_push_word(encoder, 0, 0))
        return false;
    for (size_t i = 0; i < split->count; i++)
        if (!push_piece(encoder, stretch, split->pieces[i].id, begin + split->pieces[i].begin,
                        begin + split->pieces[i].end))
            return false;
    return true;
}

/* The stretch with a space in front, in the encoder's workspace. */
static bool prefix_space(struct encoder *encoder, struct stretch *stretch)
{
    if (encoder->prefixed_capacity < stretch->size + 1) {
        char *larger = realloc(encoder->prefixed, stretch->size + 1);
        if (!larger)
            return false;
        encoder->prefixed = larger;
        encoder->prefixed_capacity = stretch->size + 1;
    }
    encoder->prefixed[0] = ' ';
    memcpy(encoder->prefixed + 1, stretch->bytes, stretch->size);
    stretch->bytes = encoder->prefixed;
    stretch->size++;
    stretch->prefixed = true;
    return true;
}

/* text[begin..end) is what ByteLevel splits: not empty, no added token. */
static bool encode_part(struct encoder *encoder, size_t begin, size_t end)
{
    const struct byte_level_settings *settings = &encoder->tokenizer->byte_level;
    struct stretch stretch = {encoder->text + begin, end - begin, begin, false};
    if (settings->prefix_space && stretch.bytes[0] != ' ' && !prefix_space(encoder, &stretch))
        return false;
    for (size_t at = 0, word_end; at < stretch.size; at = word_end) {
        word_end = settings->split == BYTE_LEVEL_WHOLE
                       ? stretch.size
                       : byte_level_word_end(stretch.bytes, stretch.size, at);
        if (!encode_word(encoder, &stretch, at, word_end))
            return false;
    }
    return true;
}

/* text[begin..end) holds no added token. */
static bool encode_words(struct encoder *encoder, size_t begin, size_t end)
{
    enum digit_split digits = encoder->tokenizer->byte_level.digits;
    for (size_t at = begin, part_end; at < end; at = part_end) {
        part_end = digit_split_end(digits, encoder->text, end, at);
        if (!encode_part(encoder, at, part_end))
            return false;
    }
    return true;
}

bool byte_pair_encode_stretch(struct encoder *encoder, size_t begin, size_t end)
{
    struct added_search search = {0};
    struct added_match match;
    size_t done = begin;
    if (begin == end)
        return true;
    while (added_tokens_next(&encoder->tokenizer->normalized, encoder->plain, encoder->text + begin,
                             end - begin, &search, &match)) {
        if (!encode_words(encoder, done, begin + match.begin) ||
            !encoder_push_added(encoder, match.id, begin + match.begin, begin + match.end))
            return false;
        done = begin + match.end;
    }
    return encode_words(encoder, done, end);
}

static bool is_space_letter(uint32_t code_point)
{
    return code_point == byte_level_code_point(' ') || unicode_is_space(code_point);
}

/* Letters that stand for spaces, at the beginning of a spelling and at its end. */
static void count_spaces(const char *spelling, size_t size, size_t *leading, size_t *trailing)
{
    size_t next;
    *leading = *trailing = 0;
    for (size_t at = 0; at < size; at = next, ++*leading)
        if (!is_space_letter(utf8_decode(spelling, size, at, &next)))
            break;
    for (size_t at = size; at > 0; ++*trailing) {
        at = utf8_previous(spelling, at);
        if (!is_space_letter(utf8_decode(spelling, size, at, &next)))
            break;
    }
}

/* Takes the spaces of its spelling off a token's place, a character each; an added token is spelled
 * as it stands in the text. One space alone may be the one that the pre-tokenizer put in front: it
 * has no place. */
static void trim(const struct tokenizer *tokenizer, const char *text, size_t size, bool is_first,
                 struct token *token)
{
    size_t leading, trailing, next;
    const char *spelling = vocabulary_spelling(tokenizer->vocabulary, token->id);
    bool is_added = tokenizer->added_kinds[token->id] != NOT_ADDED &&
                    token->id != tokenizer->byte_pair.unknown_id;
    if (is_added)
        count_spaces(text + token->begin, token->end - token->begin, &leading, &trailing);
    else
        count_spaces(spelling, strlen(spelling), &leading, &trailing);
    if (leading == 1 && (is_first || token->begin == 0) &&
        tokenizer->byte_level.trim == BYTE_LEVEL_TRIM_BUT_PREFIX)
        leading = 0;
    for (; leading > 0 && token->begin < token->end; leading--) {
        utf8_decode(text, size, token->begin, &next);
        token->begin = next;
    }
    for (; trailing > 0 && token->end > token->begin; trailing--)
        token->end = utf8_previous(text, token->end);
}

void byte_pair_finish(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                      struct encoding *encoding)
{
    for (size_t i = 0; i < encoding->token_count; i++) {
        struct token *token = &encoding->tokens[i];
        if (token->word == TOKEN_NO_WORD)
            continue;
        bool is_first = i == 0 || token[-1].text != token->text;
        if (tokenizer->byte_level.trim != BYTE_LEVEL_KEEP)
            trim(tokenizer, token->text ? input->pair : input->text,
                 token->text ? input->pair_size : input->text_size, is_first, token);
        struct word *word = &encoding->words[token->word];
        if (i == 0 || token[-1].word != token->word)
            word->begin = token->begin;
        word->end = token->end;
    }
}
