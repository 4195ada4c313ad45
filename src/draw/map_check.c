#include "draw/map_check.h"

#include <math.h>
#include <string.h>

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

static bool matrix_fits(const struct attention_map *map, struct attn_error *error)
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
    return true;
}

static bool has_weights(const struct attention_map *map, struct attn_error *error)
{
    for (size_t i = 0; i < map->panel_count; i++)
        if (!map->panels[i].weights)
            return attn_error_set(error, "panel %zu has no weights", i);
    return true;
}

bool map_check(const struct attention_map *map, struct attn_error *error)
{
    if (!matrix_fits(map, error))
        return false;
    if (map->links_a_row)
        return attn_error_set(error, "only the strongest links of each row are known, and only an "
                                     ".html page shows them: choose fewer heads or a shorter text");
    return has_weights(map, error);
}

bool map_check_links(const struct attention_map *map, struct attn_error *error)
{
    if (!matrix_fits(map, error))
        return false;
    if (!map->links_a_row)
        return has_weights(map, error);
    size_t lines = map->panel_count * map->rows;
    if (map->links_a_row > SIZE_MAX / 64 / lines)
        return attn_error_set(error, "%zu links a row are too many to draw", map->links_a_row);
    for (size_t p = 0; p < map->panel_count; p++) {
        const struct map_link *links = map->panels[p].links;
        if (!links)
            return attn_error_set(error, "panel %zu has no links", p);
        for (size_t i = 0; i < map->rows * map->links_a_row; i++)
            if (links[i].column >= map->columns)
                return attn_error_set(error, "row %zu of panel %zu has a link to column %u of %zu",
                                      i / map->links_a_row, p, (unsigned)links[i].column,
                                      map->columns);
    }
    return true;
}

bool map_has_own_columns(const struct attention_map *map)
{
    bool differs = map->columns != map->rows;
    for (size_t i = 0; !differs && i < map->columns; i++)
        differs = strcmp(map->column_labels[i], map->row_labels[i]) != 0;
    return differs;
}

static void widen(struct map_range *range, float weight)
{
    if (!isfinite(weight))
        range->has_not_a_number = true;
    else if (weight > range->largest)
        range->largest = weight;
}

struct map_range map_get_range(const struct attention_map *map)
{
    struct map_range range = {0};
    size_t a_row = map->links_a_row ? map->links_a_row : map->columns;
    for (size_t p = 0; p < map->panel_count; p++) {
        const struct map_panel *panel = &map->panels[p];
        for (size_t i = 0; i < map->rows * a_row; i++)
            widen(&range, map->links_a_row ? panel->links[i].weight : panel->weights[i]);
    }
    if (range.largest <= 0.0f)
        range.largest = 1.0f;
    return range;
}
