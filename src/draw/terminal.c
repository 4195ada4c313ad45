#include "draw/terminal.h"

#include <math.h>
#include <string.h>

#include "draw/label.h"

enum { BAR_CELLS = 24 };

#define COLOR_BAR   "\x1b[36m"
#define COLOR_RESET "\x1b[0m"

void draw_label(const char *label, struct attn_buffer *out)
{
    struct attn_buffer full = {0};
    label_show(label, strlen(label), &full);
    if (full.failed)
        out->failed = true;
    else
        label_cut(full.data, full.size, LABEL_COLUMNS, out);
    attn_buffer_release(&full);
}

static void add_spaces(size_t count, struct attn_buffer *out)
{
    for (size_t i = 0; i < count; i++)
        attn_buffer_add_text(out, " ");
}

/* On a terminal that reorders writing directions an Arabic label would swap places with the weight
 * behind it; U+2068 and U+2069 isolate it. Text for programs is left alone. */
static void add_isolated(const struct attn_buffer *label, enum terminal_color color,
                         struct attn_buffer *out)
{
    bool isolate = color == TERMINAL_COLOR && label_is_right_to_left(label->data, label->size);
    if (isolate)
        attn_buffer_add_text(out, "\xe2\x81\xa8");
    attn_buffer_add(out, label->data, label->size);
    if (isolate)
        attn_buffer_add_text(out, "\xe2\x81\xa9");
}

static void add_bar(float weight, float scale, enum terminal_color color, struct attn_buffer *out)
{
    double part = fmin(fmax((double)weight / (double)scale, 0.0), 1.0);
    int cells = isfinite(weight) ? (int)lround(part * BAR_CELLS) : 0;
    if (!cells)
        return;
    attn_buffer_add_text(out, color == TERMINAL_COLOR ? "  " COLOR_BAR : "  ");
    for (int i = 0; i < cells; i++)
        attn_buffer_add_text(out, "▇");
    if (color == TERMINAL_COLOR)
        attn_buffer_add_text(out, COLOR_RESET);
}

void draw_ranking(const struct ranking_line *lines, size_t count, float scale, int indent,
                  enum terminal_color color, struct attn_buffer *out)
{
    struct attn_buffer label = {0};
    size_t widest = 0;
    for (size_t i = 0; i < count; i++) {
        attn_buffer_clear(&label);
        draw_label(lines[i].label, &label);
        size_t width = label.failed ? 0 : label_width(label.data, label.size);
        widest = width > widest ? width : widest;
    }
    for (size_t i = 0; i < count && !label.failed; i++) {
        attn_buffer_clear(&label);
        draw_label(lines[i].label, &label);
        if (label.failed)
            break;
        add_spaces(indent > 0 ? (size_t)indent : 0, out);
        add_isolated(&label, color, out);
        add_spaces(widest - label_width(label.data, label.size) + 2, out);
        if (isnan(lines[i].weight))
            attn_buffer_add_text(out, "  NaN");
        else
            attn_buffer_format(out, "%.3f", (double)lines[i].weight);
        add_bar(lines[i].weight, scale, color, out);
        attn_buffer_add_text(out, "\n");
    }
    if (label.failed)
        out->failed = true;
    attn_buffer_release(&label);
}
