#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"
#include "text/json_fields.h"
#include "text/next_line.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

static const char *const file = "vocab.txt";
enum { FILE_LIMIT = 64 << 20, CONFIG_LIMIT = 16 << 20 };

/* One piece a line; its id is the line's number, from 0. An empty line is an id without a piece. */
static bool fill_vocabulary(struct vocabulary *vocabulary, const char *text, size_t size,
                            struct attn_error *error)
{
    int32_t id = 0;
    for (size_t begin = 0, next, end; begin < size; begin = next, id++) {
        next = next_line(text, size, begin, &end);
        if (memchr(text + begin, '\0', end - begin) ||
            utf8_invalid_offset(text + begin, end - begin) != end - begin)
            return attn_error_set(error, "%s: line %d is not UTF-8 text", file, (int)id + 1);
        if (end > begin &&
            !vocabulary_add(vocabulary, id, text + begin, end - begin, VOCABULARY_FOUND))
            return attn_error_set(error, "%s: line %d repeats line %d", file, (int)id + 1,
                                  (int)vocabulary_find(vocabulary, text + begin, end - begin) + 1);
    }
    return true;
}

static bool read_pieces(struct vocabulary *vocabulary, const char *text, size_t size,
                        struct attn_error *error)
{
    size_t lines = 0;
    for (size_t begin = 0, end; begin < size; lines++)
        begin = next_line(text, size, begin, &end);
    if (lines >= VOCABULARY_ID_LIMIT)
        return attn_error_set(error, "%s has %zu lines, expected at most %d", file, lines,
                              VOCABULARY_ID_LIMIT - 1);
    return vocabulary_create(vocabulary, (int32_t)lines, lines, size, error) &&
           fill_vocabulary(vocabulary, text, size, error);
}

static bool find_special(const struct vocabulary *vocabulary, const char *spelling, int32_t *id,
                         struct attn_error *error)
{
    *id = vocabulary_find(vocabulary, spelling, strlen(spelling));
    return *id != VOCABULARY_NO_ID ||
           attn_error_set(error, "%s has no line %s, which a BERT vocabulary needs", file,
                          spelling);
}

static bool add_specials(struct tokenizer *tokenizer, struct attn_error *error)
{
    struct vocabulary *vocabulary = tokenizer->vocabulary;
    int32_t cls, sep;
    if (!find_special(vocabulary, "[UNK]", &tokenizer->word_piece.unknown_id, error) ||
        !find_special(vocabulary, "[CLS]", &cls, error) ||
        !find_special(vocabulary, "[SEP]", &sep, error))
        return false;
    if (!sequence_template_bert(&tokenizer->single, false, cls, sep) ||
        !sequence_template_bert(&tokenizer->pair, true, cls, sep))
        return attn_error_memory(error);

    /* A model that cannot fill masks, or was never padded, may lack the last two. */
    static const char *const spellings[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        size_t length = strlen(spellings[i]);
        int32_t id = vocabulary_find(vocabulary, spellings[i], length);
        struct added_token token = {spellings[i], length, id, .special = true};
        if (id != VOCABULARY_NO_ID && !tokenizer_add_token(tokenizer, &token, false, file, error))
            return false;
    }
    return tokenizer_seal(tokenizer, file, error);
}

/* Changes *flag where the field is there and not null. */
static bool read_optional_flag(const json_t *config, const char *name, bool *flag,
                               struct attn_error *error)
{
    return !json_field(config, name) ||
           json_field_flag(config, "tokenizer_config.json", name, flag, error);
}

static bool read_config(struct bert_normalizer *normalizer, const char *path,
                        struct attn_error *error)
{
    *normalizer = (struct bert_normalizer){true, true, true, true};
    if (!attn_path_exists(path))
        return true;
    json_t *config;
    if (!attn_json_read_object(path, CONFIG_LIMIT, &config, error))
        return false;
    bool done = read_optional_flag(config, "do_lower_case", &normalizer->lowercase, error);
    normalizer->strip_accents = normalizer->lowercase;
    done = done && read_optional_flag(config, "strip_accents", &normalizer->strip_accents, error) &&
           read_optional_flag(config, "tokenize_chinese_chars", &normalizer->handle_chinese_chars,
                              error);
    json_decref(config);
    return done;
}

bool tokenizer_read_vocabulary(struct tokenizer *tokenizer, const char *path,
                               const char *config_path, struct attn_error *error)
{
    struct word_piece *model = &tokenizer->word_piece;
    tokenizer_set_kind(tokenizer, TOKENIZER_WORD_PIECE);
    model->prefix = malloc(sizeof "##");
    if (!model->prefix)
        return attn_error_memory(error);
    memcpy(model->prefix, "##", sizeof "##");
    model->prefix_length = strlen("##");
    model->longest_word = 100;

    char *text;
    size_t size;
    if (!read_config(&tokenizer->normalizer, config_path, error) ||
        !attn_file_read(path, FILE_LIMIT, &text, &size, error))
        return false;
    bool done =
        read_pieces(&model->vocabulary, text, size, error) && add_specials(tokenizer, error);
    free(text);
    return done;
}
