#include <string.h>

#include "text/json_fields.h"
#include "text/tokenizer_parts.h"
#include "text/vocabulary_json.h"

static const char *const file = "tokenizer.json";

static bool check_normalizer(const json_t *root, struct attn_error *error)
{
    const json_t *component = json_field(root, "normalizer");
    if (!component)
        return true;
    const char *type;
    return json_field_text(component, "tokenizer.json: normalizer", "type", &type, error) &&
           attn_error_set(error, "%s: normalizer %s is not implemented beside BPE, expected null",
                          file, type);
}

static const char *const place_of_splits = "tokenizer.json: pre_tokenizer";

static bool read_byte_level(struct byte_level_settings *settings, const json_t *component,
                            struct attn_error *error)
{
    const char *place = place_of_splits;
    bool use_pattern = true;
    if (!json_field_flag(component, place, "add_prefix_space", &settings->prefix_space, error) ||
        (json_field(component, "use_regex") &&
         !json_field_flag(component, place, "use_regex", &use_pattern, error)))
        return false;
    settings->split = use_pattern ? BYTE_LEVEL_WORDS : BYTE_LEVEL_WHOLE;
    return true;
}

static bool read_digits(struct byte_level_settings *settings, const json_t *component,
                        struct attn_error *error)
{
    bool individual;
    if (!json_field_flag(component, place_of_splits, "individual_digits", &individual, error))
        return false;
    settings->digits = individual ? DIGITS_SINGLE : DIGITS_IN_RUNS;
    return true;
}

/* The component, which must be of this type, or the only one of a Sequence; NULL where it is not.
 */
static const json_t *unwrap_splitter(const json_t *component, const char *type,
                                     const char *expected, struct attn_error *error)
{
    component = json_unwrap_sequence(component, place_of_splits, "pretokenizers", error);
    const char *found = json_string_value(json_field(component, "type"));
    if (!component || strcmp(found, type) == 0)
        return component;
    attn_error_set(error, "%s %s is not implemented beside BPE, expected %s", place_of_splits,
                   found, expected);
    return NULL;
}

/* ByteLevel, or Digits and then ByteLevel. */
static bool read_pre_tokenizer(struct byte_level_settings *settings, const json_t *root,
                               struct attn_error *error)
{
    const json_t *component = json_field_object(root, file, "pre_tokenizer", error);
    if (!component)
        return false;
    const json_t *list = json_field(component, "pretokenizers");
    if (json_array_size(list) == 2) {
        const json_t *digits =
            unwrap_splitter(json_array_get(list, 0), "Digits", "Digits before ByteLevel", error);
        if (!digits || !read_digits(settings, digits, error))
            return false;
        component = json_array_get(list, 1);
    }
    component = unwrap_splitter(component, "ByteLevel", "ByteLevel", error);
    return component && read_byte_level(settings, component, error);
}

/* A file without one is only for encoding; its pieces spell bytes all the same. */
static bool check_decoder(const json_t *root, struct attn_error *error)
{
    static const char *place = "tokenizer.json: decoder";
    const json_t *component = json_field(root, "decoder");
    if (!component)
        return true;
    component = json_unwrap_sequence(component, place, "decoders", error);
    if (!component)
        return false;
    const char *type = json_string_value(json_field(component, "type"));
    return strcmp(type, "ByteLevel") == 0 ||
           attn_error_set(error, "%s %s is not implemented beside BPE, expected ByteLevel", place,
                          type);
}

static bool is_off(const json_t *field)
{
    return !field || json_is_false(field) ||
           (json_is_string(field) && json_string_length(field) == 0) ||
           (json_is_number(field) && !(json_number_value(field) > 0));
}

/* Refuses what would change ids and is not implemented. */
static bool check_settings(const json_t *model, struct attn_error *error)
{
    static const char *const names[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix", "byte_fallback"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!is_off(json_field(model, names[i])))
            return attn_error_set(error, "%s: model: %s is not implemented, expected none", file,
                                  names[i]);
    return true;
}

static bool read_unknown(struct byte_pair *byte_pair, const json_t *model, struct attn_error *error)
{
    static const char *place = "tokenizer.json: model";
    const char *unknown;
    byte_pair->unknown_id = VOCABULARY_NO_ID;
    if (json_field(model, "fuse_unk") &&
        !json_field_flag(model, place, "fuse_unk", &byte_pair->fuse_unknown, error))
        return false;
    if (!json_field(model, "unk_token"))
        return true;
    if (!json_field_text(model, place, "unk_token", &unknown, error))
        return false;
    byte_pair->unknown_id = vocabulary_find(&byte_pair->vocabulary, unknown, strlen(unknown));
    return byte_pair->unknown_id != VOCABULARY_NO_ID ||
           attn_error_set(error, "%s has no piece \"%s\", which is its unk_token", place, unknown);
}

static bool read_whole_words(struct byte_pair *byte_pair, const json_t *model,
                             struct attn_error *error)
{
    return !json_field(model, "ignore_merges") ||
           json_field_flag(model, "tokenizer.json: model", "ignore_merges", &byte_pair->whole_words,
                           error);
}

/* "left right" or ["left", "right"]. */
static bool read_merge(struct byte_pair *byte_pair, const json_t *merge, size_t index,
                       struct attn_error *error)
{
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
        return byte_pair_add_merge(byte_pair, json_string_value(left), json_string_length(left),
                                   json_string_value(right), json_string_length(right), file,
                                   error);
    const char *both = json_string_value(merge);
    const char *space = both ? strchr(both, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return attn_error_set(error, "%s: model.merges[%zu] is not a pair of pieces", file, index);
    return byte_pair_add_merge(byte_pair, both, (size_t)(space - both), space + 1,
                               strlen(space + 1), file, error);
}

static bool read_model(struct byte_pair *byte_pair, const json_t *model, const json_t *added,
                       struct attn_error *error)
{
    static const char *place = "tokenizer.json: model";
    const json_t *vocab = json_field_object(model, place, "vocab", error);
    const json_t *merges = vocab ? json_field_array(model, place, "merges", error) : NULL;
    if (!merges || !check_settings(model, error) ||
        !vocabulary_read_json(&byte_pair->vocabulary, vocab, added, file, error) ||
        !read_unknown(byte_pair, model, error) || !read_whole_words(byte_pair, model, error) ||
        !byte_pair_create_merges(byte_pair, json_array_size(merges), error))
        return false;
    for (size_t i = 0; i < json_array_size(merges); i++)
        if (!read_merge(byte_pair, json_array_get(merges, i), i, error))
            return false;
    return true;
}

bool byte_pair_read_json(struct tokenizer *tokenizer, const json_t *root, const json_t *added,
                         struct attn_error *error)
{
    tokenizer_set_kind(tokenizer, TOKENIZER_BYTE_PAIR);
    return check_normalizer(root, error) &&
           read_pre_tokenizer(&tokenizer->byte_level, root, error) && check_decoder(root, error) &&
           read_model(&tokenizer->byte_pair, json_field(root, "model"), added, error);
}
