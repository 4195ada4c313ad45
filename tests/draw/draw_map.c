/* Draws what a test asks for: draw_map svg|png|html|json|npy < request > file.
 *
 * The request is JSON: {"model", "text", "pair", "rows", "columns", "row_labels": [hex],
 * "column_labels": [hex], "panels": [{"layer", "head", "weights": [row-major; null is NaN]}]}.
 * Labels, text and pair are bytes in hexadecimal, so that a test can pass what is not UTF-8. A
 * panel without "weights" has random rows that sum to 1. A refusal goes to stderr, with exit
 * status 1. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/attention_map.h"

static void fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        fail("out of memory");
    return memory;
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

static char **labels_of(const json_t *array, size_t *count)
{
    *count = json_array_size(array);
    char **labels = allocate(*count, sizeof *labels);
    for (size_t i = 0; i < *count; i++) {
        size_t size = 0;
        labels[i] = from_hex(json_array_get(array, i), &size);
    }
    return labels;
}

/* Rows as attention has them: a few strong weights, many weak ones. */
static void fill_random(float *weights, size_t rows, size_t columns, unsigned long long seed)
{
    unsigned long long state = seed * 2862933555777941757ULL + 3037000493ULL;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            double weight = exp(5.0 * (double)(state >> 40) / (double)(1 << 24));
            weights[i * columns + j] = (float)weight;
            sum += weight;
        }
        for (size_t j = 0; j < columns; j++)
            weights[i * columns + j] = (float)(weights[i * columns + j] / sum);
    }
}

static struct map_panel panel_of(const json_t *request, size_t rows, size_t columns, size_t seed)
{
    float *weights = allocate(rows * columns, sizeof *weights);
    const json_t *given = json_object_get(request, "weights");
    if (!given)
        fill_random(weights, rows, columns, seed);
    for (size_t i = 0; given && i < rows * columns; i++) {
        const json_t *weight = json_array_get(given, i);
        weights[i] = json_is_null(weight) ? NAN : (float)json_number_value(weight);
    }
    return (struct map_panel){(int)json_integer_value(json_object_get(request, "layer")),
                              (int)json_integer_value(json_object_get(request, "head")), weights};
}

static bool draw(const char *format, const struct attention_map *map, struct attn_buffer *out,
                 struct attn_error *error)
{
    static const struct {
        const char *name;
        bool (*draw)(const struct attention_map *, struct attn_buffer *, struct attn_error *);
    } formats[] = {{"svg", draw_svg},
                   {"png", draw_png},
                   {"html", draw_html},
                   {"json", draw_json},
                   {"npy", draw_npy}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strcmp(format, formats[i].name))
            return formats[i].draw(map, out, error);
    return attn_error_set(error, "%s is no format", format);
}

static void release_labels(char **labels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(labels[i]);
    free(labels);
}

int main(int argc, char **argv)
{
    json_error_t where;
    json_t *request = argc == 2 ? json_loadf(stdin, 0, &where) : NULL;
    if (!request)
        fail("usage: draw_map FORMAT < request.json");
    struct attention_map map = {
        .model = json_string_value(json_object_get(request, "model")),
        .rows = (size_t)json_integer_value(json_object_get(request, "rows")),
        .columns = (size_t)json_integer_value(json_object_get(request, "columns"))};
    char *text = from_hex(json_object_get(request, "text"), &map.text_size);
    char *pair = from_hex(json_object_get(request, "pair"), &map.pair_size);
    char **row_labels = labels_of(json_object_get(request, "row_labels"), &map.row_label_count);
    char **column_labels =
        labels_of(json_object_get(request, "column_labels"), &map.column_label_count);
    const json_t *asked = json_object_get(request, "panels");
    map.panel_count = json_array_size(asked);
    struct map_panel *panels = allocate(map.panel_count, sizeof *panels);
    for (size_t i = 0; i < map.panel_count; i++)
        panels[i] = panel_of(json_array_get(asked, i), map.rows, map.columns, i + 1);
    map.text = text;
    map.pair = pair;
    map.row_labels = (const char *const *)row_labels;
    map.column_labels = (const char *const *)column_labels;
    map.panels = panels;

    struct attn_buffer out = {0};
    struct attn_error error;
    bool drawn = draw(argv[1], &map, &out, &error);
    if (drawn)
        fwrite(out.data, 1, out.size, stdout);
    else
        fprintf(stderr, "%s\n", error.message);

    attn_buffer_release(&out);
    for (size_t i = 0; i < map.panel_count; i++)
        free((void *)panels[i].weights);
    free(panels);
    release_labels(row_labels, map.row_label_count);
    release_labels(column_labels, map.column_label_count);
    free(text);
    free(pair);
    json_decref(request);
    return drawn ? 0 : 1;
}
