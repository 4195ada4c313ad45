/* A plain matrix and its labels: all that drawing knows of attention. */
#ifndef ATTN_DRAW_ATTENTION_MAP_H
#define ATTN_DRAW_ATTENTION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { MAP_MEAN = -1 }; /* in place of a layer or head: the mean over them */

struct map_link {
    uint32_t column;
    float weight;
};

/* One matrix: row i is query i, column j is key j. Whole, or for draw_html and draw_page_data only
 * its strongest links. */
struct map_panel {
    int layer, head;              /* from 0, or MAP_MEAN */
    const float *weights;         /* [rows][columns], row-major, each in 0..1; or NULL, and */
    const struct map_link *links; /* [rows][map.links_a_row]: strongest first, 0 ends a row; with
                                   * the links that are not there its sum is taken for 1 */
};

/* What the heads of a model computed with, so that a page can show how a weight is made: queries
 * and keys as they were multiplied. Tokens are pieces, of which a row or column of the map may
 * have several. */
struct map_vectors {
    size_t layers, heads, key_heads, d, tokens;
    float scale;
    bool causal;                    /* a token sees itself and those before it */
    const float *queries;           /* [layers][heads][tokens][d] */
    const float *keys, *values;     /* [layers][key_heads][tokens][d] */
    const char *const *labels;      /* [tokens] */
    const size_t *row_tokens;       /* [rows]: the first token of each row */
    const size_t *row_token_counts; /* [rows]: and how many it has */
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
    size_t links_a_row; /* of panels that have links, all or none */
    bool renormalized;  /* rows were divided by their sums: pictures say so */

    const char *measure; /* what a number is, in plain words, "norm of …"; NULL: a weight */
    const bool *row_is_special; /* [rows], [columns]: tokens that the model adds; NULL: none is */
    const bool *column_is_special;
    const struct map_vectors *vectors; /* for pages; NULL: none */
};

/* Each appends a whole file to `out`, or nothing where it refuses: a map whose labels do not fit
 * its matrix; one of links, but for a page; a file of a size that nobody opens.
 *
 * What a reader sees is the label as it is in the text: markup is escaped, each label is isolated
 * from its neighbours' writing direction, long labels are cut between grapheme clusters, and
 * control characters, which XML cannot hold and eyes cannot see, are shown by visible signs (↵, ⇥,
 * ␛ …; a label of spaces as ␣). */
bool draw_svg(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);
bool draw_png(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);
bool draw_html(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* The data of draw_html's page alone, JSON (page_data.h); and the page without data, which asks for
 * a text and sends it to where it came from: POST look, {"text", "pair": absent for none,
 * "measure": "weights", "norm", "rollout" or "grad"}, answered with the data or {"error": one
 * line}. */
bool draw_page_data(const struct attention_map *map, struct attn_buffer *out,
                    struct attn_error *error);
bool draw_page_form(const char *model, struct attn_buffer *out, struct attn_error *error);

/* {"model", "text", "pair", "measure", "renormalized", "words", "heads": [{"layer", "head",
 * "weights"}]}; measure is null for weights, layer and head are null for a mean, words are the row
 * labels; where columns have others, "columns" follows them. */
bool draw_json(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* NumPy's .npy, version 1.0: float32 [panels, rows, columns], C order. */
bool draw_npy(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error);

/* "L4H7", or "mean of all heads", "layer 4, mean of its heads": a panel's title. */
void draw_panel_title(const struct map_panel *panel, char *title, size_t size);

#endif
