#include <stdlib.h>
#include <string.h>

#include "base/json_file.h"
#include "text/json_fields.h"
#include "text/template_json.h"
#include "text/tokenizer_parts.h"

static const char *const file = "tokenizer.json";
enum { FILE_LIMIT = 256 << 20 };

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
           place_added_token(tokenizer->vocabulary, &token, error) &&
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

/* Files of before the field "type" hold WordPiece, or BPE, which has merges. */
static bool read_model(struct tokenizer *tokenizer, const json_t *root, const json_t *added,
                       struct attn_error *error)
{
    const json_t *model = json_field_object(root, file, "model", error);
    if (!model)
        return false;
    const json_t *type = json_field(model, "type");
    const char *name = json_string_value(type);
    if (!type)
        name = json_field(model, "merges") ? "BPE" : "WordPiece";
    if (name && strcmp(name, "BPE") == 0)
        return byte_pair_read_json(tokenizer, root, added, error);
    if (name && strcmp(name, "WordPiece") == 0)
        return word_piece_read_json(tokenizer, root, added, error);
    return attn_error_set(error, "%s: model %s is not implemented, expected WordPiece or BPE", file,
                          name ? name : "type");
}

static bool read_parts(struct tokenizer *tokenizer, const json_t *root, struct attn_error *error)
{
    const json_t *version = json_field(root, "version"), *added = json_field(root, "added_tokens");
    if (version && (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        return attn_error_set(error, "%s: version is not known, expected \"1.0\"", file);
    if (added && !json_is_array(added))
        return attn_error_set(error, "%s: added_tokens is not an array", file);
    const json_t *processor = json_field(root, "post_processor");
    return read_model(tokenizer, root, added, error) &&
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
