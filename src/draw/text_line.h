/* One line of text as pixels: in the order in which it is read, Arabic letters joined, each
 * character from a font that has it, else as a box with its hexadecimal code. What needs more than
 * letters one by one (ligatures of Indic scripts, emoji joined to one picture) is drawn letter by
 * letter. */
#ifndef ATTN_DRAW_TEXT_LINE_H
#define ATTN_DRAW_TEXT_LINE_H

#include "draw/canvas.h"
#include "draw/font_set.h"

struct text_line;

/* Prepares UTF-8 text, its own first letter giving the direction; NULL when there is no memory.
 * Lives no longer than `fonts`. */
struct text_line *text_line_create(struct font_set *fonts, const char *text, double size);
void text_line_release(struct text_line *line); /* NULL is allowed */

/* Pixels from its beginning to its end. */
double text_line_width(const struct text_line *line);

/* Draws from (x, y) on its baseline, turned counter-clockwise by `angle` degrees. */
void text_line_draw(const struct text_line *line, struct canvas *canvas, double x, double y,
                    int angle, struct color color);

#endif
