#include "draw/attention_map.h"

#include <stdio.h>

void draw_panel_title(const struct map_panel *panel, char *title, size_t size)
{
    if (panel->layer == MAP_MEAN && panel->head == MAP_MEAN)
        snprintf(title, size, "mean of all heads");
    else if (panel->head == MAP_MEAN)
        snprintf(title, size, "layer %d, mean of its heads", panel->layer);
    else if (panel->layer == MAP_MEAN)
        snprintf(title, size, "head %d, mean over layers", panel->head);
    else
        snprintf(title, size, "L%dH%d", panel->layer, panel->head);
}
