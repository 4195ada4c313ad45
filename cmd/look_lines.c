#include "look_lines.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 2 };

/* The rankings of all shown rows of all panels, one behind the other. */
struct rankings {
    struct ranking_line *lines; /* [panels][shown rows][top] */
    size_t *counts;             /* [panels][shown rows]: lines that are there, at most top */
    size_t shown_rows;
    size_t top;
};

static bool is_shown(const struct look_lines *settings, size_t row)
{
    return !settings->rows || settings->rows[row];
}

static size_t count_shown(const struct attention_map *map, const struct look_lines *settings)
{
    size_t shown = 0;
    for (size_t row = 0; row < map->rows; row++)
        shown += is_shown(settings, row);
    return shown;
}

/* Larger weights first, NaN last; equals keep the order of the text. */
static bool ranks_before(float a, float b)
{
    return a > b || (isnan(b) && !isnan(a));
}

static size_t rank_row(const struct attention_map *map, const float *weights, size_t row,
                       const struct look_lines *settings, size_t top, struct ranking_line *lines)
{
    size_t count = 0;
    float sum = 0;
    size_t columns = settings->causal ? row + 1 : map->columns;
    for (size_t column = 0; column < columns; column++) {
        if (column == row && !settings->self)
            continue;
        float weight = weights[column];
        sum += weight;
        size_t place = count;
        while (place > 0 && ranks_before(weight, lines[place - 1].weight))
            place--;
        if (place == top)
            continue;
        size_t kept = count < top ? count : top - 1;
        memmove(lines + place + 1, lines + place, (kept - place) * sizeof *lines);
        lines[place] = (struct ranking_line){map->column_labels[column], weight};
        count = kept + 1;
    }
    for (size_t i = 0; settings->renormalize && sum > 0 && i < count; i++)
        lines[i].weight /= sum;
    return count;
}

static void rank_all(const struct attention_map *map, const struct look_lines *settings,
                     struct rankings *rankings)
{
    size_t ranking = 0;
    for (size_t panel = 0; panel < map->panel_count; panel++)
        for (size_t row = 0; row < map->rows; row++) {
            if (!is_shown(settings, row))
                continue;
            rankings->counts[ranking] =
                rank_row(map, map->panels[panel].weights + row * map->columns, row, settings,
                         rankings->top, rankings->lines + ranking * rankings->top);
            ranking++;
        }
}

static float largest_weight(const struct rankings *rankings, size_t count)
{
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        if (rankings->counts[i] > 0 && rankings->lines[i * rankings->top].weight > largest)
            largest = rankings->lines[i * rankings->top].weight;
    return largest > 0 ? largest : 1;
}

static void add_bold(enum terminal_color color, bool on, struct attn_buffer *out)
{
    if (color == TERMINAL_COLOR)
        attn_buffer_add_text(out, on ? "\x1b[1m" : "\x1b[0m");
}

static void add_blocks(const struct attention_map *map, const struct look_lines *settings,
                       const struct rankings *rankings, struct attn_buffer *out)
{
    float scale = largest_weight(rankings, map->panel_count * rankings->shown_rows);
    /* The label of the one row asked for says nothing new, except where nothing else is there. */
    bool one_row = settings->rows && rankings->shown_rows == 1 && rankings->counts[0] > 0;
    size_t ranking = 0;
    for (size_t panel = 0; panel < map->panel_count; panel++) {
        if (map->panel_count > 1) {
            char title[64];
            draw_panel_title(&map->panels[panel], title, sizeof title);
            attn_buffer_format(out, "%s%s\n", panel > 0 ? "\n" : "", title);
        }
        for (size_t row = 0; row < map->rows; row++) {
            if (!is_shown(settings, row))
                continue;
            if (!one_row) {
                add_bold(settings->color, true, out);
                draw_label(map->row_labels[row], out);
                add_bold(settings->color, false, out);
                attn_buffer_add_text(out, "\n");
            }
            draw_ranking(rankings->lines + ranking * rankings->top, rankings->counts[ranking],
                         scale, one_row ? 0 : INDENT, settings->color, out);
            ranking++;
        }
    }
}

/* Weights as they are need no word. */
static void add_measure(const struct attention_map *map, const struct look_lines *settings,
                        struct attn_buffer *out)
{
    if (map->measure)
        attn_buffer_format(out, "%s, as a share of the row%s", map->measure,
                           settings->renormalize ? "; " : "\n");
    if (settings->renormalize)
        attn_buffer_add_text(
            out, "renormalized: each row sums to 1 over the words that may stand in it\n");
}

bool look_lines_add(const struct attention_map *map, const struct look_lines *settings,
                    struct attn_buffer *out, struct attn_error *error)
{
    struct rankings rankings = {
        .shown_rows = count_shown(map, settings),
        .top = settings->top < map->columns ? settings->top : map->columns,
    };
    size_t count = map->panel_count * rankings.shown_rows;
    bool fits = rankings.top == 0 || count <= SIZE_MAX / sizeof *rankings.lines / rankings.top;
    rankings.lines = fits ? calloc(count * rankings.top + 1, sizeof *rankings.lines) : NULL;
    rankings.counts = calloc(count + 1, sizeof *rankings.counts);
    bool made = rankings.lines && rankings.counts;
    if (made) {
        rank_all(map, settings, &rankings);
        add_measure(map, settings, out);
        add_blocks(map, settings, &rankings, out);
    }
    free(rankings.lines);
    free(rankings.counts);
    return made && !out->failed ? true : attn_error_memory(error);
}
