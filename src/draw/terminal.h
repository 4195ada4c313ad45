/* A ranking as lines of text: "screwdriver  0.119  ▇▇▇▇▇▇". */
#ifndef ATTN_DRAW_TERMINAL_H
#define ATTN_DRAW_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct ranking_line {
    const char *label; /* UTF-8, NUL-terminated */
    float weight;
};

enum terminal_color { TERMINAL_PLAIN, TERMINAL_COLOR };

/* Appends a line for each entry: labels padded to one column by their width on a terminal (wide CJK
 * letters and emoji count two, combining marks none), the weight with three decimals, and a bar
 * whose full length is `scale` (> 0, the largest weight shown). Each line is indented by `indent`
 * spaces. Control characters never reach the terminal. */
void draw_ranking(const struct ranking_line *lines, size_t count, float scale, int indent,
                  enum terminal_color color, struct attn_buffer *out);

/* A label as draw_svg would show it, for a terminal: appended to out. */
void draw_label(const char *label, struct attn_buffer *out);

#endif
