#include "text/template_json.h"

#include <string.h>

#include "base/json_file.h"
#include "text/json_fields.h"

static bool check_token(const struct tokenizer *tokenizer, json_int_t id, const char *name,
                        struct attn_error *error)
{
    const struct vocabulary *vocabulary = tokenizer->vocabulary;
    if (id >= 0 && id < vocabulary->size && vocabulary_spelling(vocabulary, (int32_t)id))
        return true;
    return attn_error_set(error,
                          "tokenizer.json: post_processor gives \"%s\" the id %" JSON_INTEGER_FORMAT
                          ", which no token has",
                          name, id);
}

/* special_tokens[name].ids become tokens of this type. */
static bool push_special(const struct tokenizer *tokenizer, struct sequence_template *sequence,
                         const json_t *specials, const char *name, int32_t type,
                         struct attn_error *error)
{
    const json_t *special =
        json_field_object(specials, "tokenizer.json: post_processor.special_tokens", name, error);
    const json_t *ids =
        special ? json_field_array(special, "tokenizer.json: a special token of post_processor",
                                   "ids", error)
                : NULL;
    if (!ids)
        return false;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id))
            return attn_error_set(error,
                                  "tokenizer.json: post_processor: \"%s\" has ids that are not "
                                  "whole numbers",
                                  name);
        if (!check_token(tokenizer, json_integer_value(id), name, error))
            return false;
        struct template_part part = {TEMPLATE_TOKEN, (int32_t)json_integer_value(id), type};
        if (!sequence_template_push(sequence, part))
            return attn_error_memory(error);
    }
    return true;
}

/* {"SpecialToken": {"id", "type_id"}} or {"Sequence": {"id": "A" or "B", "type_id"}}. */
static bool read_part(const struct tokenizer *tokenizer, struct sequence_template *sequence,
                      const json_t *specials, const json_t *part, struct attn_error *error)
{
    static const char *place = "tokenizer.json: a part of post_processor's template";
    const json_t *special = json_field(part, "SpecialToken");
    const json_t *body = special ? special : json_field(part, "Sequence");
    long long type;
    const char *name;
    if (!json_is_object(body))
        return attn_error_set(error, "%s is neither a SpecialToken nor a Sequence", place);
    if (!json_field_text(body, place, "id", &name, error) ||
        !attn_json_integer(body, place, "type_id", 0, INT32_MAX, NULL, &type, error))
        return false;
    if (special)
        return push_special(tokenizer, sequence, specials, name, (int32_t)type, error);

    bool is_pair = strcmp(name, "B") == 0;
    if (!is_pair && strcmp(name, "A") != 0)
        return attn_error_set(error, "%s: Sequence %s is not known, expected A or B", place, name);
    struct template_part text = {is_pair ? TEMPLATE_PAIR : TEMPLATE_TEXT, 0, (int32_t)type};
    return sequence_template_push(sequence, text) || attn_error_memory(error);
}

/* Words are numbered through the text and then the pair, so that each must stand there once, in
 * order. */
static bool check_order(const struct sequence_template *sequence, const char *name,
                        enum template_part_kind last, struct attn_error *error)
{
    int expected = TEMPLATE_TEXT;
    bool in_order = true;
    for (size_t i = 0; i < sequence->count; i++)
        if (sequence->parts[i].kind != TEMPLATE_TOKEN)
            in_order = in_order && (int)sequence->parts[i].kind == expected++;
    if (in_order && expected == (int)last + 1)
        return true;
    return attn_error_set(error, "tokenizer.json: post_processor.%s must hold %s", name,
                          last == TEMPLATE_PAIR ? "sequence A once and then B once"
                                                : "sequence A once and no other");
}

static bool read_sequence(const struct tokenizer *tokenizer, struct sequence_template *sequence,
                          const json_t *processor, const char *name, enum template_part_kind last,
                          struct attn_error *error)
{
    static const char *place = "tokenizer.json: post_processor";
    const json_t *parts = json_field_array(processor, place, name, error);
    const json_t *specials =
        parts ? json_field_object(processor, place, "special_tokens", error) : NULL;
    if (!specials)
        return false;
    for (size_t i = 0; i < json_array_size(parts); i++)
        if (!read_part(tokenizer, sequence, specials, json_array_get(parts, i), error))
            return false;
    return check_order(sequence, name, last, error);
}

/* ["[SEP]", 102] */
static bool read_spelled_id(const struct tokenizer *tokenizer, const json_t *processor,
                            const char *name, int32_t *id, struct attn_error *error)
{
    const json_t *field = json_field(processor, name);
    const json_t *spelling = json_array_get(field, 0), *number = json_array_get(field, 1);
    if (json_array_size(field) != 2 || !json_is_string(spelling) || !json_is_integer(number))
        return attn_error_set(error, "tokenizer.json: post_processor.%s must be a token and its id",
                              name);
    if (!check_token(tokenizer, json_integer_value(number), json_string_value(spelling), error))
        return false;
    *id = (int32_t)json_integer_value(number);
    return true;
}

static bool read_bert(struct tokenizer *tokenizer, const json_t *processor,
                      struct attn_error *error)
{
    int32_t cls, sep;
    if (!read_spelled_id(tokenizer, processor, "cls", &cls, error) ||
        !read_spelled_id(tokenizer, processor, "sep", &sep, error))
        return false;
    return (sequence_template_bert(&tokenizer->single, false, cls, sep) &&
            sequence_template_bert(&tokenizer->pair, true, cls, sep)) ||
           attn_error_memory(error);
}

static bool set_bare(struct tokenizer *tokenizer, struct attn_error *error)
{
    return (sequence_template_bare(&tokenizer->single, false) &&
            sequence_template_bare(&tokenizer->pair, true)) ||
           attn_error_memory(error);
}

/* Adds no token, and may trim their places. */
static bool read_byte_level(struct tokenizer *tokenizer, const json_t *processor,
                            struct attn_error *error)
{
    static const char *place = "tokenizer.json: post_processor";
    bool prefix_space, trim;
    if (!json_field_flag(processor, place, "add_prefix_space", &prefix_space, error) ||
        !json_field_flag(processor, place, "trim_offsets", &trim, error))
        return false;
    if (trim)
        tokenizer->byte_level.trim = prefix_space ? BYTE_LEVEL_TRIM_BUT_PREFIX : BYTE_LEVEL_TRIM;
    return set_bare(tokenizer, error);
}

bool template_read_json(struct tokenizer *tokenizer, const json_t *processor,
                        struct attn_error *error)
{
    static const char *place = "tokenizer.json: post_processor";
    if (!processor)
        return set_bare(tokenizer, error);

    processor = json_unwrap_sequence(processor, place, "processors", error);
    if (!processor)
        return false;
    const char *type = json_string_value(json_field(processor, "type"));
    if (strcmp(type, "BertProcessing") == 0)
        return read_bert(tokenizer, processor, error);
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_sequence(tokenizer, &tokenizer->single, processor, "single", TEMPLATE_TEXT,
                             error) &&
               read_sequence(tokenizer, &tokenizer->pair, processor, "pair", TEMPLATE_PAIR, error);
    bool is_byte_pair = tokenizer->kind == TOKENIZER_BYTE_PAIR;
    if (is_byte_pair && strcmp(type, "ByteLevel") == 0)
        return read_byte_level(tokenizer, processor, error);
    return attn_error_set(error, "%s %s is not implemented, expected TemplateProcessing or %s",
                          place, type, is_byte_pair ? "ByteLevel" : "BertProcessing");
}
