#include "text/encoding_extend.h"

#include <stdint.h>
#include <stdlib.h>

#include "text/unicode.h"

static const char replacement[] = "\xEF\xBF\xBD";

/* What the tokens say, one behind the other, and where the characters of each byte will stand. */
struct saying {
    struct attn_buffer raw;   /* bytes, of which some may be no character */
    size_t *ends;             /* [count]: where each token's bytes end in raw */
    bool *is_special;         /* [count] */
    struct attn_buffer shown; /* the same as valid UTF-8 */
    size_t *from, *to;        /* [raw.size]: the character of a byte, in shown */
};

static void saying_release(struct saying *saying)
{
    attn_buffer_release(&saying->raw);
    attn_buffer_release(&saying->shown);
    free(saying->ends);
    free(saying->is_special);
    free(saying->from);
    free(saying->to);
}

static bool decode(struct saying *saying, const struct tokenizer *tokenizer, const int32_t *ids,
                   size_t count, struct attn_error *error)
{
    for (size_t t = 0; t < count; t++) {
        const size_t before = saying->raw.size;
        if (!tokenizer_decode(tokenizer, &ids[t], 1, &saying->raw, error))
            return false;
        saying->is_special[t] = saying->raw.size == before;
        if (saying->is_special[t])
            attn_buffer_add_text(&saying->raw, tokenizer_piece(tokenizer, ids[t]));
        if (saying->raw.size == before) /* a spelling of nothing: each token has a place */
            attn_buffer_add_text(&saying->raw, replacement);
        saying->ends[t] = saying->raw.size;
    }
    return !saying->raw.failed || attn_error_memory(error);
}

/* Bytes of the character at `at`, or of what stands there and is none: a byte with what would have
 * gone on from it. */
static size_t character_size(const struct attn_buffer *raw, size_t at, bool is_valid)
{
    size_t next = at + 1;
    if (is_valid)
        utf8_decode(raw->data, raw->size, at, &next);
    else
        while (next < raw->size && next < at + UTF8_LIMIT - 1 &&
               ((unsigned char)raw->data[next] & 0xC0) == 0x80)
            next++;
    return next - at;
}

static bool show(struct saying *saying)
{
    const struct attn_buffer *raw = &saying->raw;
    saying->from = calloc(raw->size + 1, sizeof *saying->from);
    saying->to = calloc(raw->size + 1, sizeof *saying->to);
    if (!saying->from || !saying->to)
        return false;
    size_t valid_end = raw->size > 0 ? utf8_invalid_offset(raw->data, raw->size) : 0;
    for (size_t at = 0; at < raw->size;) {
        const bool is_valid = at < valid_end;
        const size_t size = character_size(raw, at, is_valid), begin = saying->shown.size;
        if (is_valid)
            attn_buffer_add(&saying->shown, raw->data + at, size);
        else
            attn_buffer_add_text(&saying->shown, replacement);
        for (size_t byte = at; byte < at + size; byte++) {
            saying->from[byte] = begin;
            saying->to[byte] = saying->shown.size;
        }
        at += size;
        if (!is_valid)
            valid_end = at + utf8_invalid_offset(raw->data + at, raw->size - at);
    }
    return !saying->shown.failed;
}

static enum unicode_kind kind_at(const struct saying *saying, size_t at)
{
    size_t next;
    return unicode_kind_of(utf8_decode(saying->shown.data, saying->shown.size, at, &next));
}

/* Whether token t begins a word; the one before began at `word` of what is shown. */
static bool begins_word(const struct saying *saying, size_t t, size_t word)
{
    if (t == 0 || saying->is_special[t] || saying->is_special[t - 1])
        return true;
    const size_t raw = saying->ends[t - 1];
    const size_t at = saying->from[raw];
    if (at == saying->from[raw - 1])
        return false; /* the rest of a character */
    const enum unicode_kind first = kind_at(saying, at);
    if (at == word + 1 && saying->shown.data[word] == ' ')
        return saying->shown.data[at] == ' ';
    return first == UNICODE_SPACE ||
           first != kind_at(saying, utf8_previous(saying->shown.data, at));
}

/* Room for `count` more of each; what is there stays. */
static bool reserve(struct encoding *encoding, size_t count)
{
    const size_t tokens = encoding->token_count + count, words = encoding->word_count + count;
    if (tokens > SIZE_MAX / sizeof *encoding->tokens || words > SIZE_MAX / sizeof *encoding->words)
        return false;
    struct token *more_tokens = realloc(encoding->tokens, tokens * sizeof *more_tokens);
    if (!more_tokens)
        return false;
    encoding->tokens = more_tokens;
    struct word *more_words = realloc(encoding->words, words * sizeof *more_words);
    if (!more_words)
        return false;
    encoding->words = more_words;
    return true;
}

static void add_tokens(const struct saying *saying, const int32_t *ids, size_t count, size_t offset,
                       struct encoding *encoding)
{
    size_t word = 0;
    for (size_t t = 0; t < count; t++) {
        const size_t raw = t > 0 ? saying->ends[t - 1] : 0;
        const size_t begin = saying->from[raw], end = saying->to[saying->ends[t] - 1];
        if (begins_word(saying, t, word)) {
            word = begin;
            encoding->words[encoding->word_count++] = (struct word){.begin = offset + begin};
        }
        encoding->words[encoding->word_count - 1].end = offset + end;
        encoding->tokens[encoding->token_count++] =
            (struct token){.id = ids[t],
                           .word = (int32_t)encoding->word_count - 1,
                           .begin = offset + begin,
                           .end = offset + end};
    }
}

bool encoding_extend(struct encoding *encoding, const struct tokenizer *tokenizer,
                     const int32_t *ids, size_t count, struct attn_buffer *text,
                     struct attn_error *error)
{
    if (tokenizer_get_kind(tokenizer) != TOKENIZER_BYTE_PAIR)
        return attn_error_set(error, "tokens can be appended to a text of byte-level BPE only");
    if (count == 0)
        return true;
    struct saying saying = {.ends = calloc(count, sizeof *saying.ends),
                            .is_special = calloc(count, sizeof *saying.is_special)};
    bool done = (saying.ends && saying.is_special) || attn_error_memory(error);
    done = done && decode(&saying, tokenizer, ids, count, error);
    done = done && ((show(&saying) && reserve(encoding, count)) || attn_error_memory(error));
    const size_t offset = text->size;
    if (done) {
        attn_buffer_add(text, saying.shown.data, saying.shown.size);
        done = !text->failed || attn_error_memory(error);
    }
    if (done)
        add_tokens(&saying, ids, count, offset, encoding);
    saying_release(&saying);
    return done;
}
