#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_file.h"
#include "text/json_fields.h"
#include "text/tokenizer_parts.h"
#include "text/vocabulary_json.h"

static bool read_normalizer(struct bert_normalizer *normalizer, const json_t *root,
                            struct attn_error *error)
{
    static const char *place = "tokenizer.json: normalizer";
    const json_t *component = json_field(root, "normalizer");
    if (!component) /* the text stays as it is */
        return true;
    component = json_unwrap_sequence(component, place, "normalizers", error);
    if (!component)
        return false;
    const char *type = json_string_value(json_field(component, "type"));
    if (strcmp(type, "BertNormalizer") != 0)
        return attn_error_set(error, "%s %s is not implemented, expected BertNormalizer", place,
                              type);
    if (!json_field_flag(component, place, "clean_text", &normalizer->clean_text, error) ||
        !json_field_flag(component, place, "handle_chinese_chars",
                         &normalizer->handle_chinese_chars, error) ||
        !json_field_flag(component, place, "lowercase", &normalizer->lowercase, error))
        return false;
    normalizer->strip_accents = normalizer->lowercase;
    return !json_field(component, "strip_accents") ||
           json_field_flag(component, place, "strip_accents", &normalizer->strip_accents, error);
}

static bool check_pre_tokenizer(const json_t *root, struct attn_error *error)
{
    static const char *place = "tokenizer.json: pre_tokenizer";
    const json_t *component = json_field_object(root, "tokenizer.json", "pre_tokenizer", error);
    if (component)
        component = json_unwrap_sequence(component, place, "pretokenizers", error);
    if (!component)
        return false;
    const char *type = json_string_value(json_field(component, "type"));
    return strcmp(type, "BertPreTokenizer") == 0 ||
           attn_error_set(error, "%s %s is not implemented, expected BertPreTokenizer", place,
                          type);
}

static bool read_model(struct word_piece *model, const json_t *root, const json_t *added,
                       struct attn_error *error)
{
    static const char *place = "tokenizer.json: model";
    const json_t *component = json_field(root, "model");
    const char *unknown, *prefix;
    long long longest_word;
    const json_t *vocab = json_field_object(component, place, "vocab", error);
    if (!vocab || !json_field_text(component, place, "unk_token", &unknown, error) ||
        !json_field_text(component, place, "continuing_subword_prefix", &prefix, error) ||
        !attn_json_integer(component, place, "max_input_chars_per_word", 0, LLONG_MAX, NULL,
                           &longest_word, error))
        return false;

    if (!vocabulary_read_json(&model->vocabulary, vocab, added, "tokenizer.json", error))
        return false;
    model->unknown_id = vocabulary_find(&model->vocabulary, unknown, strlen(unknown));
    if (model->unknown_id == VOCABULARY_NO_ID)
        return attn_error_set(error, "%s has no piece \"%s\", which is its unk_token", place,
                              unknown);
    model->longest_word = (uint64_t)longest_word;
    model->prefix_length = strlen(prefix);
    model->prefix = malloc(model->prefix_length + 1);
    if (!model->prefix)
        return attn_error_memory(error);
    memcpy(model->prefix, prefix, model->prefix_length + 1);
    return true;
}

bool word_piece_read_json(struct tokenizer *tokenizer, const json_t *root, const json_t *added,
                          struct attn_error *error)
{
    tokenizer_set_kind(tokenizer, TOKENIZER_WORD_PIECE);
    return read_normalizer(&tokenizer->normalizer, root, error) &&
           check_pre_tokenizer(root, error) &&
           read_model(&tokenizer->word_piece, root, added, error);
}
