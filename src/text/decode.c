#include <string.h>

#include "text/tokenizer_parts.h"

/* One piece of WordPiece: what goes on within a word joins it. */
static void add_word_piece(const struct word_piece *model, const char *spelling, bool is_first,
                           struct attn_buffer *text)
{
    if (strncmp(spelling, model->prefix, model->prefix_length) == 0)
        spelling += model->prefix_length;
    else if (!is_first)
        attn_buffer_add_text(text, " ");
    attn_buffer_add_text(text, spelling);
}

static void add_piece(const struct tokenizer *tokenizer, int32_t id, bool is_first,
                      struct attn_buffer *text)
{
    const char *spelling = vocabulary_spelling(tokenizer->vocabulary, id);
    bool is_added = tokenizer->added_kinds[id] != NOT_ADDED;
    if (tokenizer->kind == TOKENIZER_WORD_PIECE && !is_added)
        add_word_piece(&tokenizer->word_piece, spelling, is_first, text);
    else if (tokenizer->kind == TOKENIZER_BYTE_PAIR && !is_added)
        byte_level_read(spelling, strlen(spelling), text);
    else
        attn_buffer_format(text, "%s%s",
                           tokenizer->kind == TOKENIZER_WORD_PIECE && !is_first ? " " : "",
                           spelling);
}

bool tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                      struct attn_buffer *text, struct attn_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!vocabulary_spelling(tokenizer->vocabulary, ids[i]))
            return attn_error_set(error, "token %zu has the id %d, which is not in the vocabulary",
                                  i, (int)ids[i]);
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        if (tokenizer->added_kinds[ids[i]] == ADDED_SPECIAL)
            continue;
        add_piece(tokenizer, ids[i], is_first, text);
        is_first = false;
    }
    return !text->failed || attn_error_memory(error);
}
