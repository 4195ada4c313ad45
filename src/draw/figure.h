/* A map as a figure: what stands where, for every format that draws one.
 *
 * A title, the text, and a grid of panels that share their labels: row labels at the left, column
 * labels on top, a caption under each panel, one colour legend below. Lengths are pixels at the
 * size of a screen, y grows downwards. */
#ifndef ATTN_DRAW_FIGURE_H
#define ATTN_DRAW_FIGURE_H

#include "draw/attention_map.h"
#include "draw/color_scale.h"
#include "draw/label.h"

enum text_anchor { TEXT_START, TEXT_MIDDLE, TEXT_END };

struct figure_text {
    const char *text; /* as label_show gives it */
    const char *full; /* all of it, where text was cut, or NULL */
    double x, y;      /* the point of the baseline that the anchor names */
    enum text_anchor anchor;
    int angle; /* degrees counter-clockwise: 0, 45, 90 */
    double size;
    struct color color;
    bool is_label; /* of a row or column */
};

struct figure_panel {
    size_t index;     /* into map->panels */
    double left, top; /* of the cell (0, 0) */
};

struct figure;

/* How a format draws. A painter that runs out of memory remembers it by itself. */
struct figure_painter {
    void *user;
    /* The width of a text as this painter draws it. */
    double (*text_width)(void *user, const char *text, double size);
    void (*rectangle)(void *user, double left, double top, double width, double height,
                      struct color color);
    void (*text)(void *user, const struct figure_text *text);
    /* The cells of one panel; the surface under them has the colour of level 0. */
    void (*cells)(void *user, const struct figure *figure, const struct figure_panel *panel);
};

struct figure {
    const struct attention_map *map;
    float largest;
    bool has_not_a_number;
    struct color_scale scale;
    struct shown_label *row_labels, *column_labels;
    struct attn_buffer title;
    struct attn_buffer legend;     /* what a colour says */
    struct shown_label text, pair; /* cut to the figure's width; empty where the map has none */

    double width, height; /* of the whole figure */
    double cell;          /* a cell's side */
    bool has_grid;        /* lines of the background between cells */
    bool has_values;      /* cells are large enough for their numbers */
    double label_size;    /* of the letters */
    int column_angle;
    size_t grid_columns;           /* panels beside each other */
    double left, top;              /* of the first panel */
    double step_right, step_down;  /* from panel to panel */
    double legend_top, title_left; /* y of the legend; x of titles and legend */
};

/* Lays a map out for a painter; text widths come from it. Refuses what map_check refuses. Release
 * with figure_release; on failure nothing is held. */
bool figure_create(struct figure *figure, const struct attention_map *map,
                   const struct figure_painter *painter, struct attn_error *error);
void figure_release(struct figure *figure);

/* Draws background, texts, panels and legend. */
void figure_draw(const struct figure *figure, const struct figure_painter *painter);

#endif
