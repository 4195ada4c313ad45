/* Pixels: opaque RGB, rectangles and coverage masks blended into them. */
#ifndef ATTN_DRAW_CANVAS_H
#define ATTN_DRAW_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "draw/color_scale.h"

struct canvas {
    size_t width, height;
    uint8_t *pixels; /* [height][width][3] */
};

/* A white canvas; false where there is no memory. width · height · 3 must not overflow. */
bool canvas_create(struct canvas *canvas, size_t width, size_t height);
void canvas_release(struct canvas *canvas);

/* Edges are rounded to whole pixels; what lies outside is left out. */
void canvas_fill(struct canvas *canvas, double left, double top, double width, double height,
                 struct color color);

/* One pixel: color over what is there, by coverage 0..255. Outside is left out. */
void canvas_blend(struct canvas *canvas, long x, long y, struct color color, unsigned coverage);

#endif
