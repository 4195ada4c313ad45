#include "text/vocabulary_json.h"

#include <string.h>

#include "text/json_fields.h"

static bool check_id(const json_t *id, const char *piece, const char *file,
                     struct attn_error *error)
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
                               const char *file, struct attn_error *error)
{
    const char *piece;
    json_t *id;
    json_object_foreach ((json_t *)vocab, piece, id) {
        if (!check_id(id, piece, file, error))
            return false;
        extend(extent, piece, id);
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        if (!json_field_text(token, "tokenizer.json: an added token", "content", &piece, error) ||
            !check_id(json_field(token, "id"), piece, file, error))
            return false;
        if (*piece == '\0')
            return attn_error_set(error, "%s: an added token has no content", file);
        extend(extent, piece, json_field(token, "id"));
    }
    return true;
}

static bool fill_vocabulary(struct vocabulary *vocabulary, const json_t *vocab, const char *file,
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

bool vocabulary_read_json(struct vocabulary *vocabulary, const json_t *vocab, const json_t *added,
                          const char *file, struct attn_error *error)
{
    struct extent extent = {0};
    return measure_vocabulary(vocab, added, &extent, file, error) &&
           vocabulary_create(vocabulary, extent.size, extent.pieces, extent.bytes, error) &&
           fill_vocabulary(vocabulary, vocab, file, error);
}
