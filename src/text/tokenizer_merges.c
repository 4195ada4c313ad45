#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"
#include "text/json_fields.h"
#include "text/next_line.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/vocabulary_json.h"

static const char *const file = "merges.txt";
enum { FILE_LIMIT = 256 << 20, CONFIG_LIMIT = 16 << 20 };

static bool is_version(const char *line, size_t length)
{
    static const char word[] = "#version";
    return length >= sizeof word - 1 && memcmp(line, word, sizeof word - 1) == 0;
}

static bool read_merge(struct byte_pair *model, const char *line, size_t length, size_t number,
                       struct attn_error *error)
{
    const char *space = memchr(line, ' ', length);
    size_t left = space ? (size_t)(space - line) : 0, right = space ? length - left - 1 : 0;
    if (left == 0 || right == 0 || memchr(space + 1, ' ', right))
        return attn_error_set(error, "%s: line %zu is not a pair of pieces", file, number);
    return byte_pair_add_merge(model, line, left, space + 1, right, file, error);
}

/* One pair a line, the first learned first; the first line may tell the version. */
static bool read_merges(struct byte_pair *model, const char *text, size_t size,
                        struct attn_error *error)
{
    size_t lines = 0, number = 0;
    for (size_t begin = 0, end; begin < size; lines++)
        begin = next_line(text, size, begin, &end);
    size_t invalid = utf8_invalid_offset(text, size);
    if (invalid < size || memchr(text, '\0', size))
        return attn_error_set(error, "%s is not UTF-8 text", file);
    if (!byte_pair_create_merges(model, lines, error))
        return false;
    for (size_t begin = 0, next, end; begin < size; begin = next) {
        next = next_line(text, size, begin, &end);
        number++;
        if (end > begin && !is_version(text + begin, end - begin) &&
            !read_merge(model, text + begin, end - begin, number, error))
            return false;
    }
    return true;
}

/* Other tokenizers than GPT-2's have these two files too and add tokens that they do not tell. */
static bool read_config(struct byte_level_settings *settings, const char *path,
                        struct attn_error *error)
{
    static const char *place = "tokenizer_config.json";
    json_t *config;
    if (!attn_path_exists(path))
        return true;
    if (!attn_json_read_object(path, CONFIG_LIMIT, &config, error))
        return false;
    const char *class = json_string_value(json_field(config, "tokenizer_class"));
    bool done = !class || strncmp(class, "GPT2Tokenizer", strlen("GPT2Tokenizer")) == 0;
    if (!done)
        attn_error_set(error,
                       "%s: tokenizer_class %s is not implemented with vocab.json and merges.txt, "
                       "expected GPT2Tokenizer or a tokenizer.json",
                       place, class);
    else if (json_field(config, "add_prefix_space"))
        done = json_field_flag(config, place, "add_prefix_space", &settings->prefix_space, error);
    json_decref(config);
    return done;
}

/* GPT-2's one special token, where the vocabulary has it. */
static bool add_specials(struct tokenizer *tokenizer, struct attn_error *error)
{
    static const char spelling[] = "<|endoftext|>";
    size_t length = sizeof spelling - 1;
    int32_t id = vocabulary_find(tokenizer->vocabulary, spelling, length);
    struct added_token token = {spelling, length, id, .special = true};
    return (id == VOCABULARY_NO_ID ||
            tokenizer_add_token(tokenizer, &token, false, "vocab.json", error)) &&
           tokenizer_seal(tokenizer, "vocab.json", error);
}

static bool read_vocabulary(struct vocabulary *vocabulary, const char *path,
                            struct attn_error *error)
{
    json_t *vocab;
    if (!attn_json_read_object(path, FILE_LIMIT, &vocab, error))
        return false;
    bool done = vocabulary_read_json(vocabulary, vocab, NULL, "vocab.json", error);
    json_decref(vocab);
    return done;
}

bool tokenizer_read_merges(struct tokenizer *tokenizer, const char *vocabulary_path,
                           const char *merges_path, const char *config_path,
                           struct attn_error *error)
{
    char *text;
    size_t size;
    tokenizer_set_kind(tokenizer, TOKENIZER_BYTE_PAIR);
    tokenizer->byte_pair.unknown_id = VOCABULARY_NO_ID;
    if (!read_config(&tokenizer->byte_level, config_path, error) ||
        !read_vocabulary(tokenizer->vocabulary, vocabulary_path, error) ||
        !attn_file_read(merges_path, FILE_LIMIT, &text, &size, error))
        return false;
    bool done = read_merges(&tokenizer->byte_pair, text, size, error);
    free(text);
    if (!done || !add_specials(tokenizer, error))
        return false;
    return (sequence_template_bare(&tokenizer->single, false) &&
            sequence_template_bare(&tokenizer->pair, true)) ||
           attn_error_memory(error);
}
