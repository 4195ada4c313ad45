#include "draw/map_check.h"

#include <math.h>

static bool labels_fit(const char *axis, size_t matrix, const char *const *labels, size_t count,
                       struct attn_error *error)
{
    if (matrix != count)
        return attn_error_set(error, "%zu %ss but %zu %s labels", matrix, axis, count, axis);
    for (size_t i = 0; i < count; i++)
        if (!labels || !labels[i])
            return attn_error_set(error, "%s label %zu is missing", axis, i);
    return true;
}

bool map_check(const struct attention_map *map, struct attn_error *error)
{
    if (!map->rows || !map->columns)
        return attn_error_set(error, "a map of %zu rows and %zu columns has nothing to draw",
                              map->rows, map->columns);
    if (!map->panels || !map->panel_count)
        return attn_error_set(error, "a map without panels has nothing to draw");
    if (!labels_fit("row", map->rows, map->row_labels, map->row_label_count, error) ||
        !labels_fit("column", map->columns, map->column_labels, map->column_label_count, error))
        return false;
    size_t most = SIZE_MAX / 64; /* a cell, in whatever form, is at most 64 bytes of memory */
    if (map->rows > most / map->columns || map->panel_count > most / (map->rows * map->columns))
        return attn_error_set(error, "%zu panels of %zu rows and %zu columns are too many to draw",
                              map->panel_count, map->rows, map->columns);
    for (size_t i = 0; i < map->panel_count; i++)
        if (!map->panels[i].weights)
            return attn_error_set(error, "panel %zu has no weights", i);
    return true;
}

struct map_range map_get_range(const struct attention_map *map)
{
    struct map_range range = {0};
    for (size_t p = 0; p < map->panel_count; p++) {
        const float *weights = map->panels[p].weights;
        for (size_t i = 0; i < map->rows * map->columns; i++) {
            if (!isfinite(weights[i]))
                range.has_not_a_number = true;
            else if (weights[i] > range.largest)
                range.largest = weights[i];
        }
    }
    if (range.largest <= 0.0f)
        range.largest = 1.0f;
    return range;
}
