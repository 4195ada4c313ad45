#include "draw/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/color_scale.h"
#include "draw/label.h"
#include "draw/markup.h"

enum {
    WIDTH = 760,
    MARGIN = 28,
    TITLE_SIZE = 17,
    AXIS_SIZE = 12,
    TICK_SIZE = 11,
    LEGEND_SIZE = 12,
    LEGEND_STEP = 18,
    LEGEND_LINE = 24,
    TITLE_COLUMNS = 48, /* so that title and legend do not meet */
    NAME_COLUMNS = 32,
    PLOT_LEFT = 76,
    PLOT_HEIGHT = 320,
    X_TICKS = 8, /* about so many, and no more */
    Y_TICKS = 9
};

static const struct color ink = {31, 35, 40};
static const struct color gray_ink = {92, 99, 108};
static const struct color grid_line = {230, 233, 237};
static const struct color axis_line = {150, 157, 166};

/* Told apart by people who see no red or no green, too (after P. Tol, "Colour schemes" (2021)). */
static const struct color series_colors[CURVE_SERIES_LIMIT] = {
    {68, 119, 170}, {220, 110, 40}, {34, 136, 51},  {170, 51, 119},
    {90, 90, 90},   {0, 160, 180},  {150, 120, 20}, {204, 51, 77},
};

struct axis {
    double low, high; /* of the values drawn */
    double step;      /* between round numbers: 1, 2 or 5 times a power of ten */
    int decimals;     /* that a round number needs */
    bool is_whole;    /* all values are whole numbers, and so shall be the round ones */
};

struct plot {
    const struct curve *curve;
    struct axis x, y;
    double top; /* of the plot, under title and legend */
    struct attn_buffer *svg;
};

static bool is_drawn(const struct curve_series *series, size_t point)
{
    return isfinite(series->x[point]) && isfinite(series->y[point]);
}

static void extend(struct axis *axis, double value)
{
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
    axis->is_whole = axis->is_whole && !(fabs(value - floor(value)) > 0);
}

/* The smallest round step by which `ticks` numbers span the axis. */
static void choose_step(struct axis *axis, int ticks)
{
    static const double rounds[] = {1, 2, 5, 10};
    double wanted = (axis->high - axis->low) / ticks;
    double exponent = floor(log10(wanted)), power = pow(10, exponent);
    int i = 0;
    while (i < 3 && rounds[i] * power < wanted)
        i++;
    axis->step = axis->is_whole ? fmax(rounds[i] * power, 1) : rounds[i] * power;
    axis->decimals = (int)fmax(0, -floor(log10(axis->step) + 1e-9));
}

/* A value alone gets room on both sides. */
static void widen(struct axis *axis, double least)
{
    double room = fmax(least, 1e-9 * fmax(fabs(axis->low), fabs(axis->high)));
    if (axis->high - axis->low < room) {
        axis->low -= room;
        axis->high += room;
    }
}

static bool find_range(struct plot *plot, struct attn_error *error)
{
    const struct curve *curve = plot->curve;
    plot->x = plot->y = (struct axis){.low = INFINITY, .high = -INFINITY, .is_whole = true};
    for (size_t s = 0; s < curve->series_count; s++)
        for (size_t i = 0; i < curve->series[s].points; i++)
            if (is_drawn(&curve->series[s], i)) {
                extend(&plot->x, curve->series[s].x[i]);
                extend(&plot->y, curve->series[s].y[i]);
            }
    if (plot->x.low > plot->x.high)
        return attn_error_set(error, "a curve without a finite point has nothing to draw");
    widen(&plot->x, 1e-12);
    widen(&plot->y, 1e-12);
    if (!isfinite(plot->x.high - plot->x.low) || !isfinite(plot->y.high - plot->y.low))
        return attn_error_set(error, "the curve's values span more than a double holds");
    choose_step(&plot->x, X_TICKS);
    choose_step(&plot->y, Y_TICKS);
    plot->y.low = floor(plot->y.low / plot->y.step) * plot->y.step;
    plot->y.high = ceil(plot->y.high / plot->y.step) * plot->y.step;
    return true;
}

static double place_x(const struct plot *plot, double x)
{
    double share = (x - plot->x.low) / (plot->x.high - plot->x.low);
    return PLOT_LEFT + share * (WIDTH - MARGIN - PLOT_LEFT);
}

static double place_y(const struct plot *plot, double y)
{
    double share = (y - plot->y.low) / (plot->y.high - plot->y.low);
    return plot->top + (1 - share) * PLOT_HEIGHT;
}

static void add_color(struct attn_buffer *svg, const char *name, struct color color)
{
    attn_buffer_format(svg, " %s=\"#%02x%02x%02x\"", name, color.red, color.green, color.blue);
}

static void add_line(struct plot *plot, double x1, double y1, double x2, double y2, double width,
                     struct color color)
{
    attn_buffer_format(plot->svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", x1, y1,
                       x2, y2);
    attn_buffer_format(plot->svg, " stroke-width=\"%g\"", width);
    add_color(plot->svg, "stroke", color);
    attn_buffer_add_text(plot->svg, "/>\n");
}

/* `anchor` is SVG's: "start", "middle", "end". */
static void add_text(struct plot *plot, double x, double y, int size, const char *anchor,
                     struct color color, const char *text)
{
    attn_buffer_format(plot->svg, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\"",
                       x, y, size, anchor);
    add_color(plot->svg, "fill", color);
    attn_buffer_add_text(plot->svg, ">");
    markup_add_text(plot->svg, text);
    attn_buffer_add_text(plot->svg, "</text>\n");
}

/* Any text, made visible and cut to so many columns. */
static void add_label(struct plot *plot, double x, double y, int size, const char *anchor,
                      struct color color, const char *text, size_t columns)
{
    struct attn_buffer shown = {0}, cut = {0};
    if (!text)
        return;
    label_show(text, strlen(text), &shown);
    if (!shown.failed)
        label_cut(shown.data, shown.size, columns, &cut);
    if (shown.failed || cut.failed)
        plot->svg->failed = true;
    else
        add_text(plot, x, y, size, anchor, color, cut.data);
    attn_buffer_release(&shown);
    attn_buffer_release(&cut);
}

/* −0.00 is no number that a reader expects. */
static void add_tick(struct plot *plot, const struct axis *axis, double value, double x, double y,
                     const char *anchor)
{
    char number[400];
    double shown = fabs(value) < axis->step / 2 ? 0 : value;
    if (fabs(shown) < 1e7 && axis->decimals < 8)
        snprintf(number, sizeof number, "%.*f", axis->decimals, shown);
    else
        snprintf(number, sizeof number, "%.6g", shown);
    add_text(plot, x, y, TICK_SIZE, anchor, gray_ink, number);
}

static void add_axes(struct plot *plot)
{
    double right = WIDTH - MARGIN, bottom = plot->top + PLOT_HEIGHT;
    int rows = (int)lround((plot->y.high - plot->y.low) / plot->y.step);
    for (int i = 0; i <= rows; i++) {
        double value = plot->y.low + i * plot->y.step, y = place_y(plot, value);
        add_line(plot, PLOT_LEFT, y, right, y, 1, i > 0 ? grid_line : axis_line);
        add_tick(plot, &plot->y, value, PLOT_LEFT - 8, y + 0.36 * TICK_SIZE, "end");
    }
    double first = ceil(plot->x.low / plot->x.step - 1e-9);
    for (int i = 0; i <= X_TICKS; i++) {
        double value = (first + i) * plot->x.step;
        if (value > plot->x.high + 1e-9 * plot->x.step)
            break;
        double x = place_x(plot, value);
        add_line(plot, x, bottom, x, bottom + 4, 1, axis_line);
        add_tick(plot, &plot->x, value, x, bottom + 8 + TICK_SIZE, "middle");
    }
    add_label(plot, PLOT_LEFT - 8, plot->top - 12, AXIS_SIZE, "end", gray_ink, plot->curve->y_label,
              NAME_COLUMNS);
    add_label(plot, right, bottom + 12 + TICK_SIZE + AXIS_SIZE, AXIS_SIZE, "end", gray_ink,
              plot->curve->x_label, NAME_COLUMNS);
}

/* What a column of the picture shows of a line: where it comes in, how far it reaches, where it
 * leaves. */
struct column {
    long at; /* its x, in pixels */
    double first, lowest, highest, last;
    size_t points;
};

static void add_point(struct plot *plot, double x, double y, bool *is_pen_down)
{
    attn_buffer_format(plot->svg, "%c%.1f %.1f", *is_pen_down ? 'L' : 'M', x, y);
    *is_pen_down = true;
}

static void add_column(struct plot *plot, const struct column *column, bool *is_pen_down)
{
    double x = (double)column->at;
    add_point(plot, x, column->first, is_pen_down);
    if (column->points > 2) {
        add_point(plot, x, column->lowest, is_pen_down);
        add_point(plot, x, column->highest, is_pen_down);
    }
    if (column->points > 1)
        add_point(plot, x, column->last, is_pen_down);
}

/* The points of each column as one, so that a long training makes no large file. */
static void add_crowded_line(struct plot *plot, const struct curve_series *series)
{
    struct column column = {0};
    bool is_pen_down = false;
    for (size_t i = 0; i < series->points; i++) {
        if (!is_drawn(series, i)) {
            if (column.points > 0)
                add_column(plot, &column, &is_pen_down);
            column.points = 0;
            is_pen_down = false;
            continue;
        }
        long at = lround(place_x(plot, series->x[i]));
        double y = place_y(plot, series->y[i]);
        if (column.points > 0 && column.at != at) {
            add_column(plot, &column, &is_pen_down);
            column.points = 0;
        }
        if (column.points++ == 0)
            column = (struct column){at, y, y, y, y, 1};
        column.lowest = fmin(column.lowest, y);
        column.highest = fmax(column.highest, y);
        column.last = y;
    }
    if (column.points > 0)
        add_column(plot, &column, &is_pen_down);
}

/* A point between two gaps is a line of no length, which round ends make a dot. */
static void add_sparse_line(struct plot *plot, const struct curve_series *series)
{
    bool is_pen_down = false;
    for (size_t i = 0; i < series->points; i++) {
        if (!is_drawn(series, i)) {
            is_pen_down = false;
            continue;
        }
        bool is_alone = !is_pen_down && (i + 1 == series->points || !is_drawn(series, i + 1));
        add_point(plot, place_x(plot, series->x[i]), place_y(plot, series->y[i]), &is_pen_down);
        attn_buffer_add_text(plot->svg, is_alone ? "h0" : "");
    }
}

static void add_dots(struct plot *plot, const struct curve_series *series, struct color color)
{
    attn_buffer_add_text(plot->svg, "<g");
    add_color(plot->svg, "fill", color);
    attn_buffer_add_text(plot->svg, ">");
    for (size_t i = 0; i < series->points; i++)
        if (is_drawn(series, i))
            attn_buffer_format(plot->svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>",
                               place_x(plot, series->x[i]), place_y(plot, series->y[i]));
    attn_buffer_add_text(plot->svg, "</g>\n");
}

static void add_series(struct plot *plot, size_t index)
{
    enum { WITH_DOTS = 48, CROWDED = 2 * WIDTH };
    const struct curve_series *series = &plot->curve->series[index];
    struct color color = series_colors[index];
    bool has_dots = series->points <= WITH_DOTS;
    attn_buffer_format(plot->svg,
                       "<path fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" "
                       "stroke-width=\"%s\"",
                       has_dots ? "2" : "1.2\" stroke-opacity=\"0.75");
    add_color(plot->svg, "stroke", color);
    attn_buffer_add_text(plot->svg, " d=\"");
    if (series->points > CROWDED)
        add_crowded_line(plot, series);
    else
        add_sparse_line(plot, series);
    attn_buffer_add_text(plot->svg, "\"/>\n");
    if (has_dots)
        add_dots(plot, series, color);
}

/* At the right of the title, a line a series. */
static void add_legend(struct plot *plot)
{
    double right = WIDTH - MARGIN;
    for (size_t i = 0; i < plot->curve->series_count; i++) {
        double y = MARGIN + 10 + (double)i * LEGEND_STEP;
        add_line(plot, right - LEGEND_LINE, y - 0.36 * LEGEND_SIZE, right, y - 0.36 * LEGEND_SIZE,
                 3, series_colors[i]);
        add_label(plot, right - LEGEND_LINE - 8, y, LEGEND_SIZE, "end", ink,
                  plot->curve->series[i].name, NAME_COLUMNS);
    }
}

static void add_document(struct plot *plot)
{
    double legend = MARGIN + (double)plot->curve->series_count * LEGEND_STEP;
    plot->top = fmax(MARGIN + TITLE_SIZE, legend) + 34;
    double height = plot->top + PLOT_HEIGHT + 58;
    attn_buffer_format(plot->svg,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
                       "height=\"%.0f\" viewBox=\"0 0 %d %.0f\" font-family=\"system-ui, "
                       "'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\">\n"
                       "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                       WIDTH, height, WIDTH, height);
    add_label(plot, MARGIN, MARGIN + 13, TITLE_SIZE, "start", ink, plot->curve->title,
              TITLE_COLUMNS);
    add_legend(plot);
    add_axes(plot);
    for (size_t i = 0; i < plot->curve->series_count; i++)
        add_series(plot, i);
    attn_buffer_add_text(plot->svg, "</svg>\n");
}

bool curve_svg(const struct curve *curve, struct attn_buffer *svg, struct attn_error *error)
{
    if (curve->series_count > CURVE_SERIES_LIMIT)
        return attn_error_set(error, "the curve has %zu series, expected at most %d",
                              curve->series_count, CURVE_SERIES_LIMIT);
    struct attn_buffer document = {0};
    struct plot plot = {.curve = curve, .svg = &document};
    if (!find_range(&plot, error))
        return false;
    add_document(&plot);
    if (!document.failed)
        attn_buffer_add(svg, document.data, document.size);
    bool done = !document.failed && !svg->failed;
    attn_buffer_release(&document);
    return done || attn_error_memory(error);
}
