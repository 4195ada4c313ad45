/* A plain matrix and its labels: all that drawing knows of attention. */
#ifndef ATTN_DRAW_ATTENTION_MAP_H
#define ATTN_DRAW_ATTENTION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { MAP_MEAN = -1 }; /* in place of a layer or head: the mean over them */

/* One matrix: row i is query i, column j is key j. */
struct map_panel {
    int layer, head;      /* from 0, or MAP_MEAN */
    const float *weights; /* [rows][columns], row-major, each in 0..1 */
};

struct attention_map {
    const char *model; /* its name, UTF-8 */
    const char *text;  /* UTF-8, may hold NUL bytes; NULL for none */
    size_t text_size;
    const char *pair; /* NULL for none */
    size_t pair_size;

    size_t rows, columns;
    const char *const *row_labels; /* UTF-8, NUL-terminated, as the text writes them */
    size_t row_label_count;        /* must be `rows`: "2 rows but 3 row labels" is refused */
    const char *const *column_labels;
    size_t column_label_count;

    const struct map_panel *panels;
    size_t panel_count;
    bool renormalized; /* rows were divided by their sums: pictures say so */
};

/* Each appends a whole file to `out`. They refuse a map whose labels do not fit its matrix.
 *
 * What a reader sees is the label as it is in the text: markup is escaped, each label is isolated
 * from its neighbours' writing direction, long labels are cut between grapheme clusters, and
 * control characters, which XML cannot hold and eyes cannot see, are shown by visible signs (↵, ⇥,
 * ␛ …; a label of spaces as ␣). */
bool draw_svg(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);
bool draw_png(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);
bool draw_html(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* {"model", "text", "pair", "words", "heads": [{"layer", "head", "weights"}]}; layer and head are
 * null for a mean, words are the row labels; where columns have others, "columns" follows them. */
bool draw_json(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* NumPy's .npy, version 1.0: float32 [panels, rows, columns], C order. */
bool draw_npy(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* "L4H7", or "mean of all heads", "layer 4, mean of its heads": a panel's title. */
void draw_panel_title(const struct map_panel *panel, char *title, size_t size);

#endif
