#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_file.h"
#include "text/json_fields.h"
#include "text/template_json.h"
#include "text/tokenizer_parts.h"

static const char *const file = "tokenizer.json";
enum { FILE_LIMIT = 256 << 20 };

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

static bool check_id(const json_t *id, const char *piece, struct attn_error *error)
{
    if (!json_is_integer(id))
        return attn_error_set(error, "%s: the id of \"%s\" is not a whole number", file, piece);
    json_int_t value = json_integer_value(id);
    if (value < 0 || value >= VOCABULARY_ID_LIMIT)
        return attn_error_set(error,
                              "%s: the id of \"%s\" is %" JSON_INTEGER_FORMAT ", expected 0 to %d",
                              file, piece, value, VOCABULARY_ID_LIMIT - 1);
    return true;
}

/* What vocabulary_create asks for. */
struct extent {
    int32_t size;
    size_t pieces, bytes;
};

static void extend(struct extent *extent, const char *piece, const json_t *id)
{
    if (json_integer_value(id) >= extent->size)
        extent->size = (int32_t)json_integer_value(id) + 1;
    extent->pieces++;
    extent->bytes += strlen(piece);
}

/* Checks every entry of model.vocab and added_tokens. */
static bool measure_vocabulary(const json_t *vocab, const json_t *added, struct extent *extent,
                               struct attn_error *error)
{
    const char *piece;
    json_t *id;
    json_object_foreach ((json_t *)vocab, piece, id) {
        if (!check_id(id, piece, error))
            return false;
        extend(extent, piece, id);
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        if (!json_field_text(token, "tokenizer.json: an added token", "content", &piece, error) ||
            !check_id(json_field(token, "id"), piece, error))
            return false;
        if (*piece == '\0')
            return attn_error_set(error, "%s: an added token has no content", file);
        extend(extent, piece, json_field(token, "id"));
    }
    return true;
}

static bool fill_vocabulary(struct vocabulary *vocabulary, const json_t *vocab,
                            struct attn_error *error)
{
    const char *piece;
    json_t *value;
    json_object_foreach ((json_t *)vocab, piece, value) {
        int32_t id = (int32_t)json_integer_value(value);
        if (!vocabulary_add(vocabulary, id, piece, strlen(piece), VOCABULARY_FOUND))
            return attn_error_set(error, "%s: \"%s\" has the id %d, which is \"%s\" already", file,
                                  piece, (int)id, vocabulary_spelling(vocabulary, id));
    }
    return true;
}

/* A token that the model's vocabulary has keeps its id there; any other names a free id. */
static bool place_added_token(struct vocabulary *vocabulary, const struct added_token *token,
                              struct attn_error *error)
{
    int32_t known = vocabulary_find(vocabulary, token->spelling, token->length);
    if (known == token->id)
        return true;
    if (known != VOCABULARY_NO_ID)
        return attn_error_set(error, "%s: added token \"%s\" has the id %d, but %d in model.vocab",
                              file, token->spelling, (int)token->id, (int)known);
    return vocabulary_add(vocabulary, token->id, token->spelling, token->length,
                          VOCABULARY_NAMED) ||
           attn_error_set(error, "%s: added token \"%s\" has the id %d, which is \"%s\" already",
                          file, token->spelling, (int)token->id,
                          vocabulary_spelling(vocabulary, token->id));
}

static bool read_added_token(struct tokenizer *tokenizer, const json_t *object,
                             struct attn_error *error)
{
    static const char *place = "tokenizer.json: an added token";
    const json_t *content = json_field(object, "content");
    struct added_token token = {
        .spelling = json_string_value(content),
        .length = json_string_length(content),
        .id = (int32_t)json_integer_value(json_field(object, "id")),
    };
    bool normalized;
    return json_field_flag(object, place, "special", &token.special, error) &&
           json_field_flag(object, place, "single_word", &token.single_word, error) &&
           json_field_flag(object, place, "lstrip", &token.lstrip, error) &&
           json_field_flag(object, place, "rstrip", &token.rstrip, error) &&
           json_field_flag(object, place, "normalized", &normalized, error) &&
           place_added_token(&tokenizer->model.vocabulary, &token, error) &&
           tokenizer_add_token(tokenizer, &token, normalized, file, error);
}

static bool read_added_tokens(struct tokenizer *tokenizer, const json_t *added,
                              struct attn_error *error)
{
    json_t *seen = json_object();
    bool done = seen || attn_error_memory(error);
    for (size_t i = 0; done && i < json_array_size(added); i++) {
        const json_t *object = json_array_get(added, i);
        const char *content = json_string_value(json_field(object, "content"));
        if (json_object_get(seen, content))
            done = attn_error_set(error, "%s: added token \"%s\" is there twice", file, content);
        else if (json_object_set_new(seen, content, json_null()))
            done = attn_error_memory(error);
        else
            done = read_added_token(tokenizer, object, error);
    }
    json_decref(seen);
    return done && tokenizer_seal(tokenizer, file, error);
}

static bool read_model(struct word_piece *model, const json_t *root, const json_t *added,
                       struct attn_error *error)
{
    static const char *place = "tokenizer.json: model";
    const json_t *component = json_field_object(root, "tokenizer.json", "model", error);
    if (!component)
        return false;
    const json_t *type = json_field(component, "type");
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "WordPiece") != 0))
        return attn_error_set(error, "%s %s is not implemented, expected WordPiece", place,
                              json_is_string(type) ? json_string_value(type) : "type");

    const char *unknown, *prefix;
    long long longest_word;
    const json_t *vocab = json_field_object(component, place, "vocab", error);
    if (!vocab || !json_field_text(component, place, "unk_token", &unknown, error) ||
        !json_field_text(component, place, "continuing_subword_prefix", &prefix, error) ||
        !attn_json_integer(component, place, "max_input_chars_per_word", 0, LLONG_MAX, NULL,
                           &longest_word, error))
        return false;

    struct extent extent = {0};
    if (!measure_vocabulary(vocab, added, &extent, error) ||
        !vocabulary_create(&model->vocabulary, extent.size, extent.pieces, extent.bytes, error) ||
        !fill_vocabulary(&model->vocabulary, vocab, error))
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

static bool read_parts(struct tokenizer *tokenizer, const json_t *root, struct attn_error *error)
{
    const json_t *version = json_field(root, "version"), *added = json_field(root, "added_tokens");
    if (version && (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        return attn_error_set(error, "%s: version is not known, expected \"1.0\"", file);
    if (added && !json_is_array(added))
        return attn_error_set(error, "%s: added_tokens is not an array", file);
    const json_t *processor = json_field(root, "post_processor");
    return read_normalizer(&tokenizer->normalizer, root, error) &&
           check_pre_tokenizer(root, error) && read_model(&tokenizer->model, root, added, error) &&
           read_added_tokens(tokenizer, added, error) &&
           template_read_json(tokenizer, processor, error);
}

bool tokenizer_read_json(struct tokenizer *tokenizer, const char *path, struct attn_error *error)
{
    json_t *root;
    if (!attn_json_read_object(path, FILE_LIMIT, &root, error))
        return false;
    bool done = read_parts(tokenizer, root, error);
    json_decref(root);
    return done;
}
