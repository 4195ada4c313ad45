/* What every format asks of a map before it draws. */
#ifndef ATTN_DRAW_MAP_CHECK_H
#define ATTN_DRAW_MAP_CHECK_H

#include "draw/attention_map.h"

/* Refuses a map without panels, rows or columns, with labels that do not fit its matrix ("2 rows
 * but 3 row labels"), with a missing pointer, or of a size that no memory holds; map_check one of
 * links alone, too, which map_check_links lets pass where each points to a column. */
bool map_check(const struct attention_map *map, struct attn_error *error);
bool map_check_links(const struct attention_map *map, struct attn_error *error);

/* Whether the labels of columns are others than those of rows. */
bool map_has_own_columns(const struct attention_map *map);

struct map_range {
    float largest;         /* of the weights that are numbers; 1 where none is above 0 */
    bool has_not_a_number; /* NaN or an infinity among the weights */
};

struct map_range map_get_range(const struct attention_map *map);

#endif
