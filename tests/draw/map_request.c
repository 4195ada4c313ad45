#include "map_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static size_t size_of(const json_t *object, const char *name)
{
    return (size_t)json_integer_value(json_object_get(object, name));
}

static char *from_hex(const json_t *value, size_t *size)
{
    const char *hex = json_string_value(value);
    if (!hex)
        return NULL;
    *size = strlen(hex) / 2;
    char *bytes = allocate(*size + 1, 1);
    for (size_t i = 0; i < *size; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return bytes;
}

static const char *const *labels_of(const json_t *array)
{
    size_t count = json_array_size(array), size = 0;
    const char **labels = allocate(count, sizeof *labels);
    for (size_t i = 0; i < count; i++)
        labels[i] = from_hex(json_array_get(array, i), &size);
    return labels;
}

static const bool *flags_of(const json_t *indices, size_t count)
{
    if (!indices)
        return NULL;
    bool *flags = allocate(count, sizeof *flags);
    for (size_t i = 0; i < json_array_size(indices); i++)
        flags[json_integer_value(json_array_get(indices, i))] = true;
    return flags;
}

static float number_of(const json_t *number)
{
    return json_is_null(number) ? NAN : (float)json_number_value(number);
}

/* In 0..1. */
static double next_random(unsigned long long *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*state >> 40) / (double)(1 << 24);
}

/* Softmax over the columns up to `last`; the others get 0. */
static void normalize(const double *scores, size_t last, size_t columns, float *weights)
{
    double sum = 0, most = -INFINITY;
    for (size_t j = 0; j <= last; j++)
        most = fmax(most, scores[j]);
    for (size_t j = 0; j <= last; j++)
        sum += exp(scores[j] - most);
    for (size_t j = 0; j < columns; j++)
        weights[j] = j <= last ? (float)(exp(scores[j] - most) / sum) : 0;
}

/* The scores of one row, of a head of the vectors or random. */
static size_t score(const struct attention_map *map, const struct map_panel *panel, size_t row,
                    double sharpness, unsigned long long *state, double *scores)
{
    const struct map_vectors *vectors = map->vectors;
    size_t layer = (size_t)panel->layer, head = (size_t)panel->head;
    if (!vectors || panel->layer < 0 || panel->head < 0 || vectors->tokens != map->rows ||
        map->rows != map->columns || layer >= vectors->layers || head >= vectors->heads) {
        for (size_t j = 0; j < map->columns; j++)
            scores[j] = sharpness * next_random(state);
        return map->columns - 1;
    }
    size_t d = vectors->d, tokens = vectors->tokens;
    size_t key_head = head / (vectors->heads / vectors->key_heads);
    const float *query = vectors->queries + ((layer * vectors->heads + head) * tokens + row) * d;
    const float *keys = vectors->keys + (layer * vectors->key_heads + key_head) * tokens * d;
    for (size_t j = 0; j < tokens; j++) {
        scores[j] = 0;
        for (size_t i = 0; i < d; i++)
            scores[j] += (double)query[i] * (double)keys[j * d + i];
        scores[j] *= (double)vectors->scale;
    }
    return vectors->causal ? row : tokens - 1;
}

static float *weights_of(const json_t *request, const struct attention_map *map,
                         const struct map_panel *panel, double sharpness, size_t seed)
{
    const json_t *given = json_object_get(request, "weights");
    float *weights = allocate(map->rows * map->columns, sizeof *weights);
    for (size_t i = 0; given && i < map->rows * map->columns; i++)
        weights[i] = number_of(json_array_get(given, i));
    if (given)
        return weights;
    unsigned long long state = seed * 2862933555777941757ULL + 3037000493ULL;
    double *scores = allocate(map->columns, sizeof *scores);
    for (size_t row = 0; row < map->rows; row++) {
        size_t last = score(map, panel, row, sharpness, &state, scores);
        normalize(scores, last, map->columns, weights + row * map->columns);
    }
    free(scores);
    return weights;
}

static struct map_link *links_of(const json_t *rows, const struct attention_map *map)
{
    struct map_link *links = allocate(map->rows * map->links_a_row, sizeof *links);
    for (size_t i = 0; i < map->rows * map->links_a_row; i++) {
        const json_t *row = json_array_get(rows, i / map->links_a_row);
        const json_t *link = json_array_get(row, i % map->links_a_row);
        if (link)
            links[i] = (struct map_link){(uint32_t)json_integer_value(json_array_get(link, 0)),
                                         number_of(json_array_get(link, 1))};
    }
    return links;
}

/* The strongest of each row, by a search that knows no better. */
static struct map_link *strongest_of(const float *weights, const struct attention_map *map)
{
    struct map_link *links = allocate(map->rows * map->links_a_row, sizeof *links);
    bool *taken = allocate(map->columns, sizeof *taken);
    for (size_t row = 0; row < map->rows; row++) {
        memset(taken, 0, map->columns * sizeof *taken);
        for (size_t i = 0; i < map->links_a_row && i < map->columns; i++) {
            size_t best = map->columns;
            for (size_t j = 0; j < map->columns; j++)
                if (!taken[j] && (best == map->columns || weights[row * map->columns + j] >
                                                              weights[row * map->columns + best]))
                    best = j;
            taken[best] = true;
            links[row * map->links_a_row + i] =
                (struct map_link){(uint32_t)best, weights[row * map->columns + best]};
        }
    }
    free(taken);
    return links;
}

/* `before` are the panels before it. */
static struct map_panel panel_of(const json_t *request, const struct attention_map *map,
                                 const struct map_panel *before, double sharpness, size_t seed)
{
    struct map_panel panel = {.layer = (int)json_integer_value(json_object_get(request, "layer")),
                              .head = (int)json_integer_value(json_object_get(request, "head"))};
    const json_t *links = json_object_get(request, "links");
    size_t same = json_object_get(request, "same_as") ? size_of(request, "same_as") : seed;
    if (same < seed - 1) {
        panel.weights = before[same].weights;
        panel.links = before[same].links;
        return panel;
    }
    if (links) {
        panel.links = links_of(links, map);
        return panel;
    }
    float *weights = weights_of(request, map, &panel, sharpness, seed);
    if (map->links_a_row) {
        panel.links = strongest_of(weights, map);
        free(weights);
    } else {
        panel.weights = weights;
    }
    return panel;
}

static const float *numbers_of(const json_t *given, size_t count, size_t seed)
{
    float *numbers = allocate(count, sizeof *numbers);
    unsigned long long state = seed * 2862933555777941757ULL + 3037000493ULL;
    for (size_t i = 0; i < count; i++)
        numbers[i] =
            given ? number_of(json_array_get(given, i)) : (float)(4 * next_random(&state) - 2);
    return numbers;
}

static const size_t *indices_of(const json_t *given, size_t count, size_t first, size_t step)
{
    size_t *indices = allocate(count, sizeof *indices);
    for (size_t i = 0; i < count; i++)
        indices[i] =
            given ? (size_t)json_integer_value(json_array_get(given, i)) : first + i * step;
    return indices;
}

static const struct map_vectors *vectors_of(const json_t *request, const struct attention_map *map)
{
    if (!request)
        return NULL;
    struct map_vectors *vectors = allocate(1, sizeof *vectors);
    const json_t *labels = json_object_get(request, "labels");
    *vectors = (struct map_vectors){
        .layers = size_of(request, "layers"),
        .heads = size_of(request, "heads"),
        .key_heads = size_of(request, "key_heads"),
        .d = size_of(request, "d"),
        .tokens = size_of(request, "tokens"),
        .scale = number_of(json_object_get(request, "scale")),
        .causal = json_is_true(json_object_get(request, "causal")),
        .labels = labels ? labels_of(labels) : map->row_labels,
        .row_tokens = indices_of(json_object_get(request, "row_tokens"), map->rows, 0, 1),
        .row_token_counts =
            indices_of(json_object_get(request, "row_token_counts"), map->rows, 1, 0)};
    size_t a_head = vectors->layers * vectors->tokens * vectors->d;
    vectors->queries =
        numbers_of(json_object_get(request, "queries"), a_head * vectors->heads, 101);
    vectors->keys = numbers_of(json_object_get(request, "keys"), a_head * vectors->key_heads, 102);
    vectors->values =
        numbers_of(json_object_get(request, "values"), a_head * vectors->key_heads, 103);
    return vectors;
}

void map_request_read(const json_t *request, struct attention_map *map)
{
    const json_t *row_labels = json_object_get(request, "row_labels");
    const json_t *column_labels = json_object_get(request, "column_labels");
    *map = (struct attention_map){.model = json_string_value(json_object_get(request, "model")),
                                  .measure = json_string_value(json_object_get(request, "measure")),
                                  .renormalized =
                                      json_is_true(json_object_get(request, "renormalized")),
                                  .rows = size_of(request, "rows"),
                                  .columns = size_of(request, "columns"),
                                  .row_labels = labels_of(row_labels),
                                  .row_label_count = json_array_size(row_labels),
                                  .column_labels = labels_of(column_labels),
                                  .column_label_count = json_array_size(column_labels),
                                  .links_a_row = size_of(request, "links_a_row")};
    map->text = from_hex(json_object_get(request, "text"), &map->text_size);
    map->pair = from_hex(json_object_get(request, "pair"), &map->pair_size);
    map->row_is_special = flags_of(json_object_get(request, "row_special"), map->rows);
    map->column_is_special = flags_of(json_object_get(request, "column_special"), map->columns);
    map->vectors = vectors_of(json_object_get(request, "vectors"), map);

    const json_t *asked = json_object_get(request, "panels");
    const json_t *sharpness = json_object_get(request, "sharpness");
    map->panel_count = json_array_size(asked);
    struct map_panel *panels = allocate(map->panel_count, sizeof *panels);
    for (size_t i = 0; i < map->panel_count; i++)
        panels[i] = panel_of(json_array_get(asked, i), map, panels,
                             sharpness ? json_number_value(sharpness) : 5, i + 1);
    map->panels = panels;
}
