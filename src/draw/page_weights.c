#include "draw/page_weights.h"

#include <math.h>

#include "draw/base64.h"

enum {
    WEIGHT_BYTES = 2,
    LINK_BYTES = 4, /* column and weight */
    LARGEST_CODE = 65534,
    NOT_A_NUMBER_CODE = 65535
};

size_t page_weights_whole_size(const struct attention_map *map)
{
    if (map->links_a_row)
        return SIZE_MAX;
    /* map_check has bounded the number of cells, so that this product fits. */
    return base64_text_size(map->panel_count * map->rows * map->columns * WEIGHT_BYTES);
}

void page_links_count(const struct attention_map *map, size_t limit, struct page_links *links)
{
    struct strongest strongest;
    *links = (struct page_links){.limit = limit};
    for (size_t p = 0; p < map->panel_count; p++) {
        for (size_t row = 0; row < map->rows; row++) {
            strongest_find(map, &map->panels[p], row, limit, &strongest);
            links->rows[strongest.count]++;
        }
    }
}

size_t page_links_size(const struct page_links *links, size_t most)
{
    size_t bytes = 0;
    for (size_t wanted = 0; wanted <= links->limit; wanted++)
        bytes += links->rows[wanted] * (1 + LINK_BYTES * (wanted < most ? wanted : most));
    return base64_text_size(bytes);
}

size_t page_links_fit(const struct page_links *links, size_t budget)
{
    size_t most = links->limit;
    while (most > 1 && !links->rows[most])
        most--;
    while (most > 0 && page_links_size(links, most) > budget)
        most--;
    return most;
}

static unsigned weight_code(float weight, float largest)
{
    if (!isfinite(weight))
        return NOT_A_NUMBER_CODE;
    double part = fmin(fmax((double)weight / (double)largest, 0.0), 1.0);
    return (unsigned)lround(part * LARGEST_CODE);
}

static void add_whole(const struct attention_map *map, float largest, struct base64 *text)
{
    for (size_t p = 0; p < map->panel_count; p++)
        for (size_t i = 0; i < map->rows * map->columns; i++)
            base64_add_pair(text, weight_code(map->panels[p].weights[i], largest));
}

/* The links of a row, behind their number. */
static void add_row(const struct strongest *row, float largest, struct base64 *text)
{
    base64_add(text, (unsigned)row->count);
    for (size_t i = 0; i < row->count; i++) {
        base64_add_pair(text, row->links[i].column);
        base64_add_pair(text, weight_code(row->links[i].weight, largest));
    }
}

static double add_links(const struct attention_map *map, size_t most, float largest,
                        struct base64 *text)
{
    struct strongest row;
    double mass = 0, held = 0;
    for (size_t p = 0; p < map->panel_count; p++) {
        for (size_t i = 0; i < map->rows; i++) {
            strongest_find(map, &map->panels[p], i, most, &row);
            add_row(&row, largest, text);
            mass += row.mass;
            held += row.held;
        }
    }
    return mass > 0 ? held / mass : 1;
}

void page_weights_add(const struct attention_map *map, size_t strongest, float largest,
                      struct attn_buffer *out, double *share)
{
    struct base64 text = {.out = out};
    *share = 1;
    if (strongest)
        *share = add_links(map, strongest, largest, &text);
    else
        add_whole(map, largest, &text);
    base64_end(&text);
}
