#include "draw/attention_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "draw/figure.h"
#include "draw/markup.h"

enum {
    CELLS_WITH_HOVER = 20000, /* over all panels; more are drawn as runs without hover text */
    BYTES_PER_RUN = 9         /* "M123 45h6" */
};

static const size_t svg_limit = 20000000;

/* A letter's width as a part of the letters' size, on the generous side: what draws the picture
 * later has fonts that are not known here. */
static double letter_width(int32_t code)
{
    if (code < 0x80) {
        if (strchr("iljI|.,:;'!()[]{}/\\ftr ", code))
            return 0.40;
        if (strchr("mwMW@%", code))
            return 0.95;
        return code >= 'A' && code <= 'Z' ? 0.70 : 0.60;
    }
    int columns = utf8proc_charwidth(code);
    return columns == 2 ? 1.05 : columns == 1 ? 0.65 : 0.0;
}

static double estimate_width(void *user, const char *text, double size)
{
    (void)user;
    double width = 0;
    int32_t code;
    for (const char *c = text; *c;) {
        c += utf8proc_iterate((const utf8proc_uint8_t *)c, -1, &code);
        width += letter_width(code);
    }
    return width * size;
}

/* At most two decimals, without the zeros at their end. */
static void add_number(struct attn_buffer *out, double value)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%.2f", value);
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    attn_buffer_add(out, text, (size_t)length);
}

static void add_attribute(struct attn_buffer *out, const char *name, double value)
{
    attn_buffer_format(out, " %s=\"", name);
    add_number(out, value);
    attn_buffer_add_text(out, "\"");
}

static void add_color(struct attn_buffer *out, const char *name, struct color color)
{
    attn_buffer_format(out, " %s=\"#%02x%02x%02x\"", name, color.red, color.green, color.blue);
}

static void add_rectangle(void *user, double left, double top, double width, double height,
                          struct color color)
{
    struct attn_buffer *out = user;
    attn_buffer_add_text(out, "<rect");
    add_attribute(out, "x", left);
    add_attribute(out, "y", top);
    add_attribute(out, "width", width);
    add_attribute(out, "height", height);
    add_color(out, "fill", color);
    attn_buffer_add_text(out, " pointer-events=\"none\"/>\n");
}

static void add_text(void *user, const struct figure_text *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    struct attn_buffer *out = user;
    if (text->full) {
        attn_buffer_add_text(out, "<g><title>");
        markup_add_text(out, text->full);
        attn_buffer_add_text(out, "</title>");
    }
    /* plaintext: the writing direction is that of the text's own first letter. */
    attn_buffer_add_text(out, text->is_label ? "<text class=\"label\" unicode-bidi=\"plaintext\""
                                             : "<text unicode-bidi=\"plaintext\"");
    if (text->angle) {
        attn_buffer_add_text(out, " transform=\"translate(");
        add_number(out, text->x);
        attn_buffer_add_text(out, " ");
        add_number(out, text->y);
        attn_buffer_format(out, ") rotate(%d)\"", -text->angle);
    } else {
        add_attribute(out, "x", text->x);
        add_attribute(out, "y", text->y);
    }
    add_attribute(out, "font-size", text->size);
    add_color(out, "fill", text->color);
    if (text->anchor != TEXT_START)
        attn_buffer_format(out, " text-anchor=\"%s\"", anchors[text->anchor]);
    /* The numbers in cells must not stand between the pointer and its cell. */
    if (text->anchor == TEXT_MIDDLE)
        attn_buffer_add_text(out, " pointer-events=\"none\"");
    attn_buffer_add_text(out, ">");
    markup_add_text(out, text->text);
    attn_buffer_add_text(out, text->full ? "</text></g>\n" : "</text>\n");
}

/* Each fact on a line of its own, so that one label's writing direction cannot reorder the other.
 */
static void add_hover(const struct figure *figure, size_t row, size_t column, float weight,
                      struct attn_buffer *out)
{
    attn_buffer_add_text(out, "<title>query: ");
    markup_add_text(out, figure->row_labels[row].cut.data);
    attn_buffer_add_text(out, "\nkey: ");
    markup_add_text(out, figure->column_labels[column].cut.data);
    attn_buffer_add_text(out, "\n");
    markup_add_text(out, figure->map->measure ? figure->map->measure : "weight");
    if (isfinite(weight))
        attn_buffer_format(out, ": %.4f</title>", (double)weight);
    else
        attn_buffer_add_text(out, ": not a number</title>");
}

static void add_cells_with_hover(const struct figure *figure, const struct figure_panel *panel,
                                 struct attn_buffer *out)
{
    const struct attention_map *map = figure->map;
    const float *weights = map->panels[panel->index].weights;
    for (size_t i = 0; i < map->rows * map->columns; i++) {
        size_t row = i / map->columns, column = i % map->columns;
        attn_buffer_add_text(out, "<rect");
        add_attribute(out, "x", panel->left + (double)column * figure->cell);
        add_attribute(out, "y", panel->top + (double)row * figure->cell);
        add_attribute(out, "width", figure->cell);
        add_attribute(out, "height", figure->cell);
        add_color(out, "fill", figure->scale.level[color_level(weights[i], figure->largest)]);
        attn_buffer_add_text(out, ">");
        add_hover(figure, row, column, weights[i], out);
        attn_buffer_add_text(out, "</rect>\n");
    }
}

/* Neighbours in a row that have the same colour. */
struct run {
    size_t row, column, length;
    int level;
};

/* The next run at or behind cell *at, runs of level 0 left out: that is the surface under the
 * cells. False at the end. */
static bool next_run(const struct figure *figure, const float *weights, size_t *at, struct run *run)
{
    const struct attention_map *map = figure->map;
    size_t cells = map->rows * map->columns;
    while (*at < cells) {
        size_t begin = *at, row_end = begin - begin % map->columns + map->columns;
        int level = color_level(weights[begin], figure->largest);
        while (*at < row_end && color_level(weights[*at], figure->largest) == level)
            ++*at;
        if (level > 0) {
            *run = (struct run){begin / map->columns, begin % map->columns, *at - begin, level};
            return true;
        }
    }
    return false;
}

static int compare_levels(const void *a, const void *b)
{
    const struct run *left = a, *right = b;
    if (left->level != right->level)
        return left->level < right->level ? -1 : 1;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    return left->column < right->column ? -1 : left->column > right->column;
}

static size_t count_runs(const struct figure *figure, const float *weights)
{
    struct run run;
    size_t count = 0;
    for (size_t at = 0; next_run(figure, weights, &at, &run);)
        count++;
    return count;
}

/* One path for each colour, in units of cells. */
static void add_cells_as_runs(const struct figure *figure, const struct figure_panel *panel,
                              struct attn_buffer *out)
{
    const float *weights = figure->map->panels[panel->index].weights;
    size_t count = count_runs(figure, weights), found = 0;
    struct run *runs = malloc((count ? count : 1) * sizeof *runs);
    if (!runs) {
        out->failed = true;
        return;
    }
    for (size_t at = 0; found < count && next_run(figure, weights, &at, &runs[found]);)
        found++;
    qsort(runs, found, sizeof *runs, compare_levels);
    attn_buffer_add_text(out, "<g fill=\"none\" stroke-width=\"1\" transform=\"translate(");
    add_number(out, panel->left);
    attn_buffer_add_text(out, " ");
    add_number(out, panel->top + figure->cell / 2);
    attn_buffer_add_text(out, ") scale(");
    add_number(out, figure->cell);
    attn_buffer_add_text(out, ")\">");
    for (size_t i = 0; i < found; i++) {
        if (i == 0 || runs[i].level != runs[i - 1].level) {
            attn_buffer_add_text(out, i ? "\"/>\n<path" : "\n<path");
            add_color(out, "stroke", figure->scale.level[runs[i].level]);
            attn_buffer_add_text(out, " d=\"");
        }
        attn_buffer_format(out, "M%zu %zuh%zu", runs[i].column, runs[i].row, runs[i].length);
    }
    attn_buffer_add_text(out, found ? "\"/>\n</g>\n" : "</g>\n");
    free(runs);
}

static bool has_hover(const struct attention_map *map)
{
    return map->rows * map->columns * map->panel_count <= CELLS_WITH_HOVER;
}

static void add_cells(void *user, const struct figure *figure, const struct figure_panel *panel)
{
    struct attn_buffer *out = user;
    attn_buffer_add_text(out, "<g shape-rendering=\"crispEdges\">\n");
    if (has_hover(figure->map))
        add_cells_with_hover(figure, panel, out);
    else
        add_cells_as_runs(figure, panel, out);
    attn_buffer_add_text(out, "</g>\n");
}

/* Refuses what would become a file that no viewer opens with pleasure. */
static bool size_is_sensible(const struct figure *figure, struct attn_error *error)
{
    const struct attention_map *map = figure->map;
    if (has_hover(map))
        return true;
    size_t runs = 0;
    for (size_t p = 0; p < map->panel_count && runs <= SIZE_MAX / 2 / BYTES_PER_RUN; p++)
        runs += count_runs(figure, map->panels[p].weights);
    if (runs <= svg_limit / BYTES_PER_RUN)
        return true;
    return attn_error_set(error,
                          "the SVG would have about %zu MB, at most %zu are drawn: choose fewer "
                          "heads or a shorter text, or draw an .html page",
                          runs * BYTES_PER_RUN / 1000000, svg_limit / 1000000);
}

static void add_document(const struct figure *figure, const struct figure_painter *painter,
                         struct attn_buffer *out)
{
    attn_buffer_add_text(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    add_attribute(out, "width", figure->width);
    add_attribute(out, "height", figure->height);
    attn_buffer_add_text(out, " viewBox=\"0 0 ");
    add_number(out, figure->width);
    attn_buffer_add_text(out, " ");
    add_number(out, figure->height);
    attn_buffer_add_text(out, "\" font-family=\"system-ui, 'Segoe UI', Roboto, 'Noto Sans', "
                              "'DejaVu Sans', sans-serif\" xml:space=\"preserve\" "
                              "style=\"white-space:pre\">\n<title>");
    markup_add_text(out, figure->title.data);
    attn_buffer_add_text(out, "</title>\n");
    figure_draw(figure, painter);
    attn_buffer_add_text(out, "</svg>\n");
}

bool draw_svg(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    const struct figure_painter painter = {.user = out,
                                           .text_width = estimate_width,
                                           .rectangle = add_rectangle,
                                           .text = add_text,
                                           .cells = add_cells};
    struct figure figure;
    if (!figure_create(&figure, map, &painter, error))
        return false;
    bool sensible = size_is_sensible(&figure, error);
    if (sensible)
        add_document(&figure, &painter, out);
    figure_release(&figure);
    return sensible && (!out->failed || attn_error_memory(error));
}
