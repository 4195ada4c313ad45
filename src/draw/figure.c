#include "draw/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/map_check.h"

enum {
    MARGIN = 28,
    TITLE_SIZE = 17,
    TEXT_SIZE = 13,
    LINE_HEIGHT = TEXT_SIZE + 7,
    AXIS_SIZE = 12,
    AXIS_GAP = 22, /* between heading and axis name */
    SMALL_SIZE = 11,
    VALUE_SIZE = 10,
    MODEL_COLUMNS = 64, /* of a model's name in the title */
    LABEL_GAP = 8,      /* between labels and cells */
    PANEL_GAP = 18,     /* between panels */
    CAPTION_ROOM = 38,  /* under a panel, where it has a caption */
    LEGEND_WIDTH = 192,
    LEGEND_STEPS = 96,
    LEGEND_BAR = 10,
    LEGEND_HEIGHT = 48,
    SMALLEST_CELL = 9, /* letters beside smaller ones cannot be read */
    LARGEST_CELL = 34,
    CELL_WITH_GRID = 12,
    CELL_WITH_VALUES = 32,
    CELL_WITH_SLANTED_LABELS = 20,
    GRID_ROOM = 1120 /* what the cells of all panels beside each other would like to fill */
};

static const double half_root_two = 0.70710678118654752;
static const struct color white = {255, 255, 255};
static const struct color ink = {31, 35, 40};
static const struct color gray_ink = {92, 99, 108};

static const char *const row_axis = "query: the word that looks";
static const char *const column_axis = "key: the word it looks at";
static const char *const not_a_number_name = "not a number";

/* Panels beside each other: one layer's heads where all layers have as many, else near a square. */
static size_t choose_grid_columns(const struct attention_map *map)
{
    size_t run = 1;
    while (run < map->panel_count && map->panels[run].layer == map->panels[0].layer)
        run++;
    bool even = run > 1 && run < map->panel_count && map->panel_count % run == 0;
    for (size_t i = 0; even && i < map->panel_count; i++)
        even = map->panels[i].layer == map->panels[i - i % run].layer;
    return even ? run : (size_t)ceil(sqrt((double)map->panel_count));
}

static void choose_cell(struct figure *figure)
{
    size_t most =
        figure->map->rows > figure->map->columns ? figure->map->rows : figure->map->columns;
    double fair = GRID_ROOM / ((double)most * (double)figure->grid_columns);
    figure->cell = floor(fmin(fmax(fair, SMALLEST_CELL), LARGEST_CELL));
    figure->has_grid = figure->cell >= CELL_WITH_GRID;
    figure->has_values = figure->cell >= CELL_WITH_VALUES;
    figure->label_size = fmin(TEXT_SIZE, fmax(8, 0.8 * figure->cell));
    figure->column_angle = figure->cell >= CELL_WITH_SLANTED_LABELS ? 45 : 90;
}

static double widest_label(const struct figure *figure, const struct figure_painter *painter,
                           const struct shown_label *labels, size_t count)
{
    double widest = 0;
    for (size_t i = 0; i < count; i++)
        widest = fmax(widest,
                      painter->text_width(painter->user, labels[i].cut.data, figure->label_size));
    return widest;
}

/* How far slanted column labels reach beyond the right edge of their panel. */
static double overhang(const struct figure *figure, const struct figure_painter *painter)
{
    double farthest = 0;
    for (size_t j = 0; figure->column_angle == 45 && j < figure->map->columns; j++) {
        double width = painter->text_width(painter->user, figure->column_labels[j].cut.data,
                                           figure->label_size);
        double behind = ((double)(figure->map->columns - j) - 0.5) * figure->cell;
        farthest = fmax(farthest, (width + figure->label_size) * half_root_two - behind);
    }
    return farthest;
}

static double widest_caption(const struct figure *figure, const struct figure_painter *painter)
{
    double widest = 0;
    char caption[64];
    for (size_t i = 0; figure->map->panel_count > 1 && i < figure->map->panel_count; i++) {
        draw_panel_title(&figure->map->panels[i], caption, sizeof caption);
        widest = fmax(widest, painter->text_width(painter->user, caption, SMALL_SIZE));
    }
    return widest;
}

static void write_title(struct figure *figure)
{
    const struct attention_map *map = figure->map;
    attn_buffer_add_text(&figure->title, "Attention");
    if (map->model && map->model[0]) {
        struct attn_buffer model = {0};
        label_show(map->model, strlen(map->model), &model);
        attn_buffer_add_text(&figure->title, " in ");
        if (model.failed)
            figure->title.failed = true;
        else
            label_cut(model.data, model.size, MODEL_COLUMNS, &figure->title);
        attn_buffer_release(&model);
    }
    if (map->panel_count == 1) {
        char panel[64];
        draw_panel_title(&map->panels[0], panel, sizeof panel);
        attn_buffer_format(&figure->title, ": %s", panel);
    }
    if (map->text)
        label_show(map->text, map->text_size, &figure->text.full);
    if (map->pair)
        label_show(map->pair, map->pair_size, &figure->pair.full);
}

static void write_legend(struct figure *figure)
{
    const struct attention_map *map = figure->map;
    const char *measure = map->measure;
    if (!measure)
        measure = map->renormalized ? "share of the weight shown" : "attention weight";
    attn_buffer_add_text(&figure->legend, measure);
    if (map->measure && map->renormalized)
        attn_buffer_add_text(&figure->legend, ", as a share of what is shown");
    attn_buffer_add_text(&figure->legend, ", from 0 to the largest in this picture");
}

/* The y under title and text. */
static double heading_bottom(const struct attention_map *map)
{
    int lines = (map->text != NULL) + (map->pair != NULL);
    return MARGIN + TITLE_SIZE + lines * LINE_HEIGHT;
}

static void place(struct figure *figure, const struct figure_painter *painter)
{
    const struct attention_map *map = figure->map;
    size_t grid_rows = (map->panel_count + figure->grid_columns - 1) / figure->grid_columns;
    double row_room = widest_label(figure, painter, figure->row_labels, map->rows);
    double column_room = widest_label(figure, painter, figure->column_labels, map->columns);
    if (figure->column_angle == 45)
        column_room = (column_room + figure->label_size) * half_root_two;

    double panel_width = (double)map->columns * figure->cell;
    double panel_height = (double)map->rows * figure->cell;
    figure->step_right = fmax(panel_width, widest_caption(figure, painter)) + PANEL_GAP;
    figure->step_down = panel_height + (map->panel_count > 1 ? CAPTION_ROOM : 0);
    figure->left = ceil(MARGIN + AXIS_SIZE + 14 + row_room + LABEL_GAP);
    figure->top = ceil(heading_bottom(map) + AXIS_GAP + AXIS_SIZE + 10 + column_room + LABEL_GAP);
    figure->title_left = MARGIN;

    double body_width =
        (double)(figure->grid_columns - 1) * figure->step_right +
        fmax(panel_width + overhang(figure, painter), figure->step_right - PANEL_GAP);
    double body_height = fmax((double)grid_rows * figure->step_down,
                              painter->text_width(painter->user, row_axis, AXIS_SIZE));
    figure->legend_top = figure->top + body_height + 26;
    double right =
        figure->left + fmax(body_width, painter->text_width(painter->user, column_axis, AXIS_SIZE));
    right =
        fmax(right, MARGIN + painter->text_width(painter->user, figure->title.data, TITLE_SIZE));
    right =
        fmax(right, MARGIN + painter->text_width(painter->user, figure->legend.data, SMALL_SIZE));
    figure->width = ceil(right + MARGIN);
    figure->height = ceil(figure->legend_top + LEGEND_HEIGHT + MARGIN - 8);
}

/* One line of the heading; a column of a terminal is at most 0.62 of the letters' size. */
static void cut_line(struct shown_label *line, double width)
{
    double columns = fmax((width - 2 * MARGIN) / (0.62 * TEXT_SIZE), 1);
    if (line->full.data)
        line->was_cut = label_cut(line->full.data, line->full.size, (size_t)columns, &line->cut);
}

static bool has_failed(const struct figure *figure)
{
    return !figure->row_labels || !figure->column_labels || figure->title.failed ||
           figure->legend.failed || figure->text.full.failed || figure->text.cut.failed ||
           figure->pair.full.failed || figure->pair.cut.failed;
}

bool figure_create(struct figure *figure, const struct attention_map *map,
                   const struct figure_painter *painter, struct attn_error *error)
{
    *figure = (struct figure){.map = map};
    if (!map_check(map, error))
        return false;
    struct map_range range = map_get_range(map);
    figure->largest = range.largest;
    figure->has_not_a_number = range.has_not_a_number;
    color_scale_on_white(&figure->scale);
    figure->row_labels = shown_labels_create(map->row_labels, map->rows);
    figure->column_labels = shown_labels_create(map->column_labels, map->columns);
    write_title(figure);
    write_legend(figure);
    if (!has_failed(figure)) {
        figure->grid_columns = choose_grid_columns(map);
        choose_cell(figure);
        place(figure, painter);
        cut_line(&figure->text, figure->width);
        cut_line(&figure->pair, figure->width);
    }
    if (has_failed(figure)) {
        figure_release(figure);
        return attn_error_memory(error);
    }
    return true;
}

static void release_line(struct shown_label *line)
{
    attn_buffer_release(&line->full);
    attn_buffer_release(&line->cut);
}

void figure_release(struct figure *figure)
{
    shown_labels_release(figure->row_labels, figure->map->rows);
    shown_labels_release(figure->column_labels, figure->map->columns);
    attn_buffer_release(&figure->title);
    attn_buffer_release(&figure->legend);
    release_line(&figure->text);
    release_line(&figure->pair);
}

static void draw_line(const struct figure *figure, const struct figure_painter *painter,
                      const struct shown_label *line, double y)
{
    painter->text(painter->user,
                  &(struct figure_text){.text = line->cut.data,
                                        .full = line->was_cut ? line->full.data : NULL,
                                        .x = figure->title_left,
                                        .y = y,
                                        .size = TEXT_SIZE,
                                        .color = gray_ink});
}

static void draw_heading(const struct figure *figure, const struct figure_painter *painter)
{
    double y = MARGIN + 13;
    painter->text(painter->user, &(struct figure_text){.text = figure->title.data,
                                                       .x = figure->title_left,
                                                       .y = y,
                                                       .size = TITLE_SIZE,
                                                       .color = ink});
    y += TEXT_SIZE + 10;
    if (figure->map->text) {
        draw_line(figure, painter, &figure->text, y);
        y += LINE_HEIGHT;
    }
    if (figure->map->pair)
        draw_line(figure, painter, &figure->pair, y);
}

static void draw_axes(const struct figure *figure, const struct figure_painter *painter)
{
    painter->text(painter->user,
                  &(struct figure_text){.text = column_axis,
                                        .x = figure->left,
                                        .y = heading_bottom(figure->map) + AXIS_GAP + 10,
                                        .size = AXIS_SIZE,
                                        .color = gray_ink});
    painter->text(painter->user, &(struct figure_text){.text = row_axis,
                                                       .x = MARGIN + 10,
                                                       .y = figure->top,
                                                       .anchor = TEXT_END,
                                                       .angle = 90,
                                                       .size = AXIS_SIZE,
                                                       .color = gray_ink});
}

static void draw_label_text(const struct figure *figure, const struct figure_painter *painter,
                            const struct shown_label *label, struct figure_text text)
{
    text.text = label->cut.data;
    text.full = label->was_cut ? label->full.data : NULL;
    text.size = figure->label_size;
    text.color = ink;
    text.is_label = true;
    painter->text(painter->user, &text);
}

static void draw_row_labels(const struct figure *figure, const struct figure_painter *painter,
                            double top)
{
    for (size_t i = 0; i < figure->map->rows; i++)
        draw_label_text(figure, painter, &figure->row_labels[i],
                        (struct figure_text){.x = figure->left - LABEL_GAP,
                                             .y = top + ((double)i + 0.5) * figure->cell +
                                                  0.35 * figure->label_size,
                                             .anchor = TEXT_END});
}

static void draw_column_labels(const struct figure *figure, const struct figure_painter *painter,
                               double left)
{
    /* Puts the middle of the letters, not their baseline, over the middle of the cells. */
    double shift = (figure->column_angle == 45 ? 0.0 : 0.35) * figure->label_size;
    for (size_t j = 0; j < figure->map->columns; j++)
        draw_label_text(figure, painter, &figure->column_labels[j],
                        (struct figure_text){.x = left + ((double)j + 0.5) * figure->cell + shift,
                                             .y = figure->top - LABEL_GAP,
                                             .angle = figure->column_angle});
}

/* Lines between the cells, so that a row can be followed with the eye. */
static void draw_grid(const struct figure *figure, const struct figure_painter *painter,
                      const struct figure_panel *panel)
{
    double line = figure->cell >= CELL_WITH_SLANTED_LABELS ? 2 : 1;
    double width = (double)figure->map->columns * figure->cell;
    double height = (double)figure->map->rows * figure->cell;
    for (size_t i = 1; i < figure->map->rows; i++)
        painter->rectangle(painter->user, panel->left,
                           panel->top + (double)i * figure->cell - line / 2, width, line, white);
    for (size_t j = 1; j < figure->map->columns; j++)
        painter->rectangle(painter->user, panel->left + (double)j * figure->cell - line / 2,
                           panel->top, line, height, white);
}

static void draw_values(const struct figure *figure, const struct figure_painter *painter,
                        const struct figure_panel *panel)
{
    const struct attention_map *map = figure->map;
    const float *weights = map->panels[panel->index].weights;
    for (size_t i = 0; i < map->rows * map->columns; i++) {
        float weight = weights[i];
        int level = color_level(weight, figure->largest);
        if (level == COLOR_NOT_A_NUMBER || weight < 0.005f)
            continue;
        char value[32];
        snprintf(value, sizeof value, "%.2f", (double)weight);
        double column = (double)(i % map->columns), row = (double)(i / map->columns);
        painter->text(
            painter->user,
            &(struct figure_text){.text = value[0] == '0' ? value + 1 : value,
                                  .x = panel->left + (column + 0.5) * figure->cell,
                                  .y = panel->top + (row + 0.5) * figure->cell + 0.36 * VALUE_SIZE,
                                  .anchor = TEXT_MIDDLE,
                                  .size = VALUE_SIZE,
                                  .color = level > COLOR_LEVELS * 2 / 5 ? white : ink});
    }
}

static void draw_panel(const struct figure *figure, const struct figure_painter *painter,
                       size_t index)
{
    const struct attention_map *map = figure->map;
    size_t grid_row = index / figure->grid_columns, grid_column = index % figure->grid_columns;
    struct figure_panel panel = {
        .index = index,
        .left = figure->left + (double)grid_column * figure->step_right,
        .top = figure->top + (double)grid_row * figure->step_down,
    };
    double width = (double)map->columns * figure->cell;
    double height = (double)map->rows * figure->cell;
    if (grid_column == 0)
        draw_row_labels(figure, painter, panel.top);
    if (grid_row == 0)
        draw_column_labels(figure, painter, panel.left);
    painter->rectangle(painter->user, panel.left, panel.top, width, height, figure->scale.level[0]);
    painter->cells(painter->user, figure, &panel);
    if (figure->has_grid)
        draw_grid(figure, painter, &panel);
    if (figure->has_values)
        draw_values(figure, painter, &panel);
    if (map->panel_count > 1) {
        char caption[64];
        draw_panel_title(&map->panels[index], caption, sizeof caption);
        painter->text(painter->user, &(struct figure_text){.text = caption,
                                                           .x = panel.left,
                                                           .y = panel.top + height + 14,
                                                           .size = SMALL_SIZE,
                                                           .color = gray_ink});
    }
}

static void draw_legend(const struct figure *figure, const struct figure_painter *painter)
{
    struct figure_text text = {.text = figure->legend.data,
                               .x = figure->title_left,
                               .y = figure->legend_top + 9,
                               .size = SMALL_SIZE,
                               .color = gray_ink};
    painter->text(painter->user, &text);
    double top = figure->legend_top + 17, step = (double)LEGEND_WIDTH / LEGEND_STEPS;
    for (int i = 0; i < LEGEND_STEPS; i++)
        painter->rectangle(painter->user, figure->title_left + i * step, top, step, LEGEND_BAR,
                           figure->scale.level[i * (COLOR_LEVELS - 1) / (LEGEND_STEPS - 1)]);
    text.y = top + LEGEND_BAR + 14;
    for (int i = 0; i <= 2; i++) {
        char number[32];
        snprintf(number, sizeof number, "%.3g", i * (double)figure->largest / 2);
        text.text = number;
        text.x = figure->title_left + i * LEGEND_WIDTH / 2.0;
        text.anchor = i == 0 ? TEXT_START : i == 1 ? TEXT_MIDDLE : TEXT_END;
        painter->text(painter->user, &text);
    }
    if (!figure->has_not_a_number)
        return;
    text.text = not_a_number_name;
    text.x = figure->title_left + LEGEND_WIDTH + 38;
    text.y = top + LEGEND_BAR - 1;
    text.anchor = TEXT_START;
    painter->rectangle(painter->user, text.x - 16, top, LEGEND_BAR, LEGEND_BAR,
                       figure->scale.level[COLOR_NOT_A_NUMBER]);
    painter->text(painter->user, &text);
}

void figure_draw(const struct figure *figure, const struct figure_painter *painter)
{
    painter->rectangle(painter->user, 0, 0, figure->width, figure->height, white);
    draw_heading(figure, painter);
    draw_axes(figure, painter);
    for (size_t i = 0; i < figure->map->panel_count; i++)
        draw_panel(figure, painter, i);
    draw_legend(figure, painter);
}
