#include "text/tokenizer_lists.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_parts.h"
#include "text/unicode.h"

/* Bytes of a text of the file that a message shows. */
enum { SHOWN_LIMIT = 100 };

static int shown(struct text_span span)
{
    return span.size < SHOWN_LIMIT ? (int)span.size : SHOWN_LIMIT;
}

/* Pre-tokenizers by the names that GGUF files give them. Only those that split for Hugging Face as
 * they do for llama.cpp. */
static bool read_splits(struct byte_level_settings *settings, const struct tokenizer_lists *lists,
                        struct attn_error *error)
{
    static const struct {
        const char *name;
        enum digit_split digits;
    } known[] = {
        {"gpt-2", DIGITS_WITHIN},
        {"phi-2", DIGITS_WITHIN},
        {"smollm", DIGITS_SINGLE},
        {"starcoder", DIGITS_SINGLE},
    };
    struct text_span name = lists->splits;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (name.size == strlen(known[i].name) &&
            memcmp(name.text, known[i].name, name.size) == 0) {
            settings->digits = known[i].digits;
            settings->prefix_space = lists->prefix_space;
            return true;
        }
    return attn_error_set(error,
                          "%s: pre-tokenizer %.*s is not known, only gpt-2, phi-2, smollm and "
                          "starcoder are",
                          lists->file, shown(name), name.text);
}

static enum listed_token kind_of(const struct tokenizer_lists *lists, size_t id)
{
    return lists->kinds ? (enum listed_token)lists->kinds[id] : LISTED_NORMAL;
}

static bool add_special(struct tokenizer *tokenizer, const struct tokenizer_lists *lists, size_t id,
                        bool is_special, struct attn_error *error)
{
    struct text_span spelling = lists->tokens[id];
    const struct added_token token = {spelling.text, spelling.size, (int32_t)id,
                                      .special = is_special};
    return tokenizer_add_token(tokenizer, &token, false, lists->file, error);
}

static bool add_piece(struct vocabulary *vocabulary, const struct tokenizer_lists *lists, size_t id,
                      struct attn_error *error)
{
    struct text_span piece = lists->tokens[id];
    enum vocabulary_entry entry =
        kind_of(lists, id) == LISTED_UNUSED ? VOCABULARY_NAMED : VOCABULARY_FOUND;
    if (piece.size == 0 || memchr(piece.text, '\0', piece.size) ||
        utf8_invalid_offset(piece.text, piece.size) < piece.size)
        return attn_error_set(error, "%s: token %zu is not UTF-8 text", lists->file, id);
    return vocabulary_add(vocabulary, (int32_t)id, piece.text, piece.size, entry) ||
           attn_error_set(error, "%s: token %zu repeats token %d, \"%.*s\"", lists->file, id,
                          (int)vocabulary_find(vocabulary, piece.text, piece.size), shown(piece),
                          piece.text);
}

static bool add_token(struct tokenizer *tokenizer, const struct tokenizer_lists *lists, size_t id,
                      struct attn_error *error)
{
    enum listed_token kind = kind_of(lists, id);
    if (!add_piece(tokenizer->vocabulary, lists, id, error))
        return false;
    switch (kind) {
    case LISTED_NORMAL:
    case LISTED_UNUSED:
        return true;
    case LISTED_UNKNOWN:
    case LISTED_CONTROL:
    case LISTED_USER_DEFINED:
        return add_special(tokenizer, lists, id, kind != LISTED_USER_DEFINED, error);
    case LISTED_BYTE:
        break;
    }
    return attn_error_set(error, "%s: token %zu is of kind %d, expected 1 to 5", lists->file, id,
                          (int)kind);
}

static bool read_tokens(struct tokenizer *tokenizer, const struct tokenizer_lists *lists,
                        struct attn_error *error)
{
    size_t bytes = 0, count = lists->token_count;
    if (count == 0 || count >= VOCABULARY_ID_LIMIT)
        return attn_error_set(error, "%s: the vocabulary has %zu tokens, expected 1 to %d",
                              lists->file, count, VOCABULARY_ID_LIMIT - 1);
    for (size_t id = 0; id < count; id++) {
        if (lists->tokens[id].size > UINT32_MAX - bytes)
            return attn_error_set(error, "%s: the tokens have more than 4 GiB", lists->file);
        bytes += lists->tokens[id].size;
    }
    if (!vocabulary_create(tokenizer->vocabulary, (int32_t)count, count, bytes, error))
        return false;
    for (size_t id = 0; id < count; id++)
        if (!add_token(tokenizer, lists, id, error))
            return false;
    return tokenizer_seal(tokenizer, lists->file, error);
}

static bool read_merges(struct byte_pair *model, const struct tokenizer_lists *lists,
                        struct attn_error *error)
{
    if (!byte_pair_create_merges(model, lists->merge_count, error))
        return false;
    for (size_t i = 0; i < lists->merge_count; i++) {
        struct text_span merge = lists->merges[i];
        const char *space = merge.size ? memchr(merge.text, ' ', merge.size) : NULL;
        size_t left = space ? (size_t)(space - merge.text) : 0;
        size_t right = space ? merge.size - left - 1 : 0;
        if (left == 0 || right == 0 || memchr(space + 1, ' ', right))
            return attn_error_set(error, "%s: merge %zu is not a pair of pieces", lists->file, i);
        if (!byte_pair_add_merge(model, merge.text, left, space + 1, right, lists->file, error))
            return false;
    }
    return true;
}

/* The first token before the text, and before the pair. */
static bool push_text(struct sequence_template *sequence, enum template_part_kind kind,
                      int32_t type, int32_t first_id)
{
    const struct template_part first = {TEMPLATE_TOKEN, first_id, type}, text = {kind, 0, type};
    return (first_id < 0 || sequence_template_push(sequence, first)) &&
           sequence_template_push(sequence, text);
}

static bool read_first(struct tokenizer *tokenizer, const struct tokenizer_lists *lists,
                       struct attn_error *error)
{
    int32_t first = lists->first_id;
    if (first < -1 || first >= tokenizer->vocabulary->size)
        return attn_error_set(error, "%s: the first token has the id %d, which no token has",
                              lists->file, (int)first);
    return (push_text(&tokenizer->single, TEMPLATE_TEXT, 0, first) &&
            push_text(&tokenizer->pair, TEMPLATE_TEXT, 0, first) &&
            push_text(&tokenizer->pair, TEMPLATE_PAIR, 1, first)) ||
           attn_error_memory(error);
}

static bool read_lists(struct tokenizer *tokenizer, const struct tokenizer_lists *lists,
                       struct attn_error *error)
{
    tokenizer_set_kind(tokenizer, TOKENIZER_BYTE_PAIR);
    tokenizer->byte_pair.unknown_id = VOCABULARY_NO_ID;
    return read_splits(&tokenizer->byte_level, lists, error) &&
           read_tokens(tokenizer, lists, error) &&
           read_merges(&tokenizer->byte_pair, lists, error) && read_first(tokenizer, lists, error);
}

bool tokenizer_open_lists(struct tokenizer **tokenizer, const struct tokenizer_lists *lists,
                          struct attn_error *error)
{
    *tokenizer = NULL;
    struct tokenizer *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    if (!read_lists(opened, lists, error)) {
        tokenizer_close(opened);
        return false;
    }
    *tokenizer = opened;
    return true;
}
