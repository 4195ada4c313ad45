#include "draw/attention_map.h"

#include <string.h>

#include "draw/label.h"
#include "draw/map_check.h"

/* `scratch` is reused from string to string. NULL is null. */
static void add_string(const char *text, size_t size, struct attn_buffer *scratch,
                       struct attn_buffer *out)
{
    if (!text) {
        attn_buffer_add_text(out, "null");
        return;
    }
    attn_buffer_clear(scratch);
    label_repair(text, size, scratch);
    attn_buffer_add_json_string(out, scratch->size ? scratch->data : "", scratch->size);
}

static void add_index(const char *name, int index, struct attn_buffer *out)
{
    if (index == MAP_MEAN)
        attn_buffer_format(out, "\"%s\": null, ", name);
    else
        attn_buffer_format(out, "\"%s\": %d, ", name, index);
}

static void add_panel(const struct attention_map *map, const struct map_panel *panel,
                      struct attn_buffer *out)
{
    attn_buffer_add_text(out, "{");
    add_index("layer", panel->layer, out);
    add_index("head", panel->head, out);
    attn_buffer_add_text(out, "\"weights\": [");
    for (size_t row = 0; row < map->rows; row++) {
        attn_buffer_add_text(out, row ? ", [" : "[");
        for (size_t column = 0; column < map->columns; column++) {
            if (column)
                attn_buffer_add_text(out, ", ");
            attn_buffer_add_json_float(out, panel->weights[row * map->columns + column]);
        }
        attn_buffer_add_text(out, "]");
    }
    attn_buffer_add_text(out, "]}");
}

static void add_labels(const char *const *labels, size_t count, struct attn_buffer *scratch,
                       struct attn_buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            attn_buffer_add_text(out, ", ");
        add_string(labels[i], strlen(labels[i]), scratch, out);
    }
}

bool draw_json(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    if (!map_check(map, error))
        return false;
    struct attn_buffer scratch = {0};
    attn_buffer_add_text(out, "{\"model\": ");
    add_string(map->model, map->model ? strlen(map->model) : 0, &scratch, out);
    attn_buffer_add_text(out, ", \"text\": ");
    add_string(map->text, map->text_size, &scratch, out);
    attn_buffer_add_text(out, ", \"pair\": ");
    add_string(map->pair, map->pair_size, &scratch, out);
    attn_buffer_add_text(out, ", \"measure\": ");
    add_string(map->measure, map->measure ? strlen(map->measure) : 0, &scratch, out);
    attn_buffer_format(out, ", \"renormalized\": %s, \"words\": [",
                       map->renormalized ? "true" : "false");
    add_labels(map->row_labels, map->rows, &scratch, out);
    if (map_has_own_columns(map)) {
        attn_buffer_add_text(out, "], \"columns\": [");
        add_labels(map->column_labels, map->columns, &scratch, out);
    }
    attn_buffer_add_text(out, "], \"heads\": [");
    for (size_t p = 0; p < map->panel_count; p++) {
        if (p)
            attn_buffer_add_text(out, ", ");
        add_panel(map, &map->panels[p], out);
    }
    attn_buffer_add_text(out, "]}\n");
    bool failed = out->failed || scratch.failed;
    attn_buffer_release(&scratch);
    return !failed || attn_error_memory(error);
}
