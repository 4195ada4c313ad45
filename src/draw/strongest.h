/* The strongest links of a row of a map. */
#ifndef ATTN_DRAW_STRONGEST_H
#define ATTN_DRAW_STRONGEST_H

#include "draw/attention_map.h"

enum { STRONGEST_LIMIT = 255 }; /* links of a row */

struct strongest {
    size_t count;
    struct map_link links[STRONGEST_LIMIT];
    double mass, held; /* of the row, and of these links */
};

/* A row's links until they hold 70 % of its mass (the sum of its weights that are positive
 * numbers), at most `limit` ≤ STRONGEST_LIMIT: strongest first, of equal ones the lower column
 * first. What is not a number goes before all and counts nothing. Of a map that has links alone a
 * row's mass is taken for 1, or for their sum where that is more. */
void strongest_find(const struct attention_map *map, const struct map_panel *panel, size_t row,
                    size_t limit, struct strongest *strongest);

#endif
