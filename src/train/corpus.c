#include "train/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/unicode.h"
#include "train/checksum.h"

#define LARGEST_TEXT ((size_t)16 << 30)

/* Bytes that are encoded at a time: an encoding takes many times the memory of its text. */
enum { PIECE = 1 << 20 };

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The last place before `end` where a text may be cut without changing a token: before a line end
 * that follows a word. GPT-2's pattern joins spaces with what is behind them only, and BERT's words
 * hold none. Where there is no such place behind `begin`, `end`, moved back to a whole character.
 */
static size_t cut_before(const char *text, size_t begin, size_t end)
{
    for (size_t i = end; i > begin + 1; i--)
        if (text[i] == '\n' && !is_space(text[i - 1]))
            return i;
    while (end > begin + 1 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    return end;
}

static size_t choose_training_size(const char *text, size_t size, double held_out)
{
    size_t wanted = size - (size_t)((double)size * held_out);
    if (wanted >= size)
        return size;
    return cut_before(text, wanted > PIECE ? wanted - PIECE : 0, wanted);
}

bool corpus_read(struct corpus *corpus, const char *path, double held_out, struct attn_error *error)
{
    *corpus = (struct corpus){0};
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    if (!attn_file_read(path, LARGEST_TEXT, &corpus->text, &corpus->size, error))
        return false;
    size_t invalid = utf8_invalid_offset(corpus->text, corpus->size);
    if (corpus->size == 0)
        attn_error_set(error, "%s: is empty; there is nothing to learn from", name);
    else if (invalid != corpus->size)
        attn_error_set(error, "%s: byte %zu is not valid UTF-8", name, invalid);
    else {
        corpus->training_size = choose_training_size(corpus->text, corpus->size, held_out);
        corpus->checksum = checksum_add(0, corpus->text, corpus->size);
        return true;
    }
    corpus_release(corpus);
    return false;
}

void corpus_release(struct corpus *corpus)
{
    free(corpus->text);
    free(corpus->ids);
    *corpus = (struct corpus){0};
}

/* Ids that grow in number. */
struct id_list {
    int32_t *ids;
    size_t count, capacity;
};

static bool add_ids(struct id_list *list, const struct encoding *encoding, struct attn_error *error)
{
    if (encoding->token_count > list->capacity - list->count) {
        size_t capacity = 2 * list->capacity + encoding->token_count;
        int32_t *grown = realloc(list->ids, capacity * sizeof *grown);
        if (!grown)
            return attn_error_memory(error);
        list->ids = grown;
        list->capacity = capacity;
    }
    for (size_t i = 0; i < encoding->token_count; i++)
        if (encoding->tokens[i].word != TOKEN_NO_WORD)
            list->ids[list->count++] = encoding->tokens[i].id;
    return true;
}

static bool encode_part(const struct tokenizer *tokenizer, const char *text, size_t size,
                        struct id_list *list, struct attn_error *error)
{
    for (size_t begin = 0; begin < size;) {
        size_t end = size - begin > PIECE ? cut_before(text, begin, begin + PIECE) : size;
        struct tokenizer_input input = {
            .text = text + begin, .text_size = end - begin, .specials = SPECIAL_PLAIN};
        struct encoding encoding;
        if (!tokenizer_encode(tokenizer, &input, &encoding, error))
            return false;
        bool added = add_ids(list, &encoding, error);
        encoding_release(&encoding);
        if (!added)
            return false;
        begin = end;
    }
    return true;
}

bool corpus_encode(struct corpus *corpus, const struct tokenizer *tokenizer,
                   struct attn_error *error)
{
    struct id_list list = {0};
    size_t held_out_size = corpus->size - corpus->training_size;
    if (!encode_part(tokenizer, corpus->text, corpus->training_size, &list, error)) {
        free(list.ids);
        return false;
    }
    corpus->training_count = (int64_t)list.count;
    if (!encode_part(tokenizer, corpus->text + corpus->training_size, held_out_size, &list,
                     error)) {
        free(list.ids);
        return false;
    }
    corpus->held_out_count = (int64_t)list.count - corpus->training_count;
    corpus->ids = list.ids;
    free(corpus->text);
    corpus->text = NULL;
    return true;
}
