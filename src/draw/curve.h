/* Lines over steps, as a training's loss: axes with round numbers, a legend. */
#ifndef ATTN_DRAW_CURVE_H
#define ATTN_DRAW_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CURVE_SERIES_LIMIT = 8 }; /* more colours are not told apart */

struct curve_series {
    const char *name; /* UTF-8 */
    size_t points;
    const double *x, *y; /* [points], in the order in which they are joined */
};

struct curve {
    const char *title, *x_label, *y_label; /* UTF-8; NULL for none */
    const struct curve_series *series;     /* [series_count] */
    size_t series_count;
};

/* Appends a whole SVG to `svg`. A point that is not finite is skipped, and the line has a gap
 * there; later series are drawn over earlier ones. A line of a million points takes no more room
 * than the picture has columns. Refuses a curve without a finite point, or with more series than
 * CURVE_SERIES_LIMIT; on failure nothing is appended. */
bool curve_svg(const struct curve *curve, struct attn_buffer *svg, struct attn_error *error);

#endif
