#include "draw/page_vectors.h"

#include <math.h>

#include "base/checked.h"
#include "draw/base64.h"
#include "draw/page_label.h"

enum { CODE_BYTES = 2, LARGEST_CODE = 32767, NOT_A_NUMBER_CODE = -32768 };

/* The numbers of `heads` heads a layer; false where no size_t holds them. */
static bool count_numbers(const struct map_vectors *vectors, size_t heads, size_t *count)
{
    return attn_checked_size_multiply(vectors->layers, heads, count) &&
           attn_checked_size_multiply(*count, vectors->tokens, count) &&
           attn_checked_size_multiply(*count, vectors->d, count) && *count <= SIZE_MAX / 16;
}

bool page_vectors_check(const struct attention_map *map, struct attn_error *error)
{
    const struct map_vectors *vectors = map->vectors;
    size_t count;
    if (!vectors)
        return true;
    if (!vectors->layers || !vectors->heads || !vectors->key_heads || !vectors->d ||
        !vectors->tokens || vectors->heads % vectors->key_heads)
        return attn_error_set(error,
                              "vectors of %zu layers, %zu heads, %zu key heads, %zu tokens and %zu "
                              "numbers each are none of a model",
                              vectors->layers, vectors->heads, vectors->key_heads, vectors->tokens,
                              vectors->d);
    if (!count_numbers(vectors, vectors->heads, &count))
        return attn_error_set(error, "the vectors are too many to draw");
    if (!vectors->queries || !vectors->keys || !vectors->values || !vectors->labels ||
        !vectors->row_tokens || !vectors->row_token_counts)
        return attn_error_set(error, "vectors without numbers, labels or rows");
    for (size_t i = 0; i < vectors->tokens; i++)
        if (!vectors->labels[i])
            return attn_error_set(error, "token label %zu is missing", i);
    for (size_t i = 0; i < map->rows; i++)
        if (vectors->row_tokens[i] > vectors->tokens ||
            vectors->row_token_counts[i] > vectors->tokens - vectors->row_tokens[i])
            return attn_error_set(error, "row %zu has tokens from %zu, %zu of them, of %zu", i,
                                  vectors->row_tokens[i], vectors->row_token_counts[i],
                                  vectors->tokens);
    return true;
}

static size_t codes_size(const struct map_vectors *vectors, size_t heads)
{
    size_t count;
    return count_numbers(vectors, heads, &count) ? base64_text_size(count * CODE_BYTES) : SIZE_MAX;
}

size_t page_vectors_codes_size(const struct map_vectors *vectors)
{
    size_t queries = codes_size(vectors, vectors->heads);
    size_t keys = codes_size(vectors, vectors->key_heads);
    return queries < SIZE_MAX / 4 && keys < SIZE_MAX / 4 ? queries + 2 * keys : SIZE_MAX;
}

/* {"largest", "codes"} */
static void add_codes(const char *name, const float *numbers, size_t count, struct attn_buffer *out)
{
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]))
            largest = fmaxf(largest, fabsf(numbers[i]));
    attn_buffer_format(out, ",\n\"%s\": {\"largest\": ", name);
    attn_buffer_add_json_float(out, largest);
    attn_buffer_add_text(out, ", \"codes\": \"");
    struct base64 text = {.out = out};
    double scale = largest > 0 ? LARGEST_CODE / (double)largest : 0;
    for (size_t i = 0; i < count; i++) {
        long code = isfinite(numbers[i]) ? lround((double)numbers[i] * scale) : NOT_A_NUMBER_CODE;
        base64_add_pair(&text, (unsigned)code & 0xffff);
    }
    base64_end(&text);
    attn_buffer_add_text(out, "\"}");
}

static void add_indices(const char *name, const size_t *indices, size_t count,
                        struct attn_buffer *out)
{
    attn_buffer_format(out, ",\n\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        attn_buffer_format(out, i ? ",%zu" : "%zu", indices[i]);
    attn_buffer_add_text(out, "]");
}

void page_vectors_add(const struct attention_map *map, struct attn_buffer *out)
{
    const struct map_vectors *vectors = map->vectors;
    attn_buffer_format(out, "{\"layers\": %zu, \"heads\": %zu, \"keyHeads\": %zu, \"d\": %zu, ",
                       vectors->layers, vectors->heads, vectors->key_heads, vectors->d);
    attn_buffer_add_text(out, "\"scale\": ");
    attn_buffer_add_json_float(out, vectors->scale);
    attn_buffer_format(out, ", \"causal\": %s,\n\"tokens\": ", vectors->causal ? "true" : "false");
    page_labels_add(vectors->labels, vectors->tokens, out);
    add_indices("rowTokens", vectors->row_tokens, map->rows, out);
    add_indices("rowTokenCounts", vectors->row_token_counts, map->rows, out);
    size_t a_head = vectors->layers * vectors->tokens * vectors->d;
    add_codes("queries", vectors->queries, a_head * vectors->heads, out);
    add_codes("keys", vectors->keys, a_head * vectors->key_heads, out);
    add_codes("values", vectors->values, a_head * vectors->key_heads, out);
    attn_buffer_add_text(out, "}");
}
