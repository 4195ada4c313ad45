/* From the bytes of a label to what a reader sees. */
#ifndef ATTN_DRAW_LABEL_H
#define ATTN_DRAW_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { LABEL_COLUMNS = 24 }; /* longer labels are cut beside a matrix */

/* Unicode's pictures of control characters: ␀ for U+0000 and so on to U+001F, and ␡. */
enum { FIRST_CONTROL_PICTURE = 0x2400, DELETE_PICTURE = 0x2421 };

/* Appends any bytes as visible text: valid UTF-8 that every XML document and terminal may hold.
 *   line ends, tabs              ↵ ⇥
 *   other control characters     ␍ ␛ … by their Unicode pictures
 *   bytes that are not UTF-8     \xF0
 *   what eyes or XML cannot take \u202E (C1 controls, line separators, embeddings and overrides of
 *                                direction, noncharacters)
 *   a label of blanks only       ␣ for each space, \u00A0 and the like for others
 *   an empty label               ∅
 * All else, blanks between letters included, stays as it is. */
void label_show(const char *label, size_t size, struct attn_buffer *out);

/* Appends text as label_show gives it, cut between grapheme clusters to at most `columns` (≥ 1)
 * terminal columns, "…" included, and to 32 bytes a column, so that marks piled up on one letter
 * have an end. Returns whether anything was cut. */
bool label_cut(const char *shown, size_t size, size_t columns, struct attn_buffer *out);

/* Columns on a terminal: wide letters and emoji count two, combining marks none. */
size_t label_width(const char *shown, size_t size);

/* Whether a letter in it is written from right to left. */
bool label_is_right_to_left(const char *shown, size_t size);

/* Appends text as it is, each byte that is not UTF-8 replaced by U+FFFD. */
void label_repair(const char *text, size_t size, struct attn_buffer *out);

/* A label made ready for drawing. */
struct shown_label {
    struct attn_buffer full; /* all of it */
    struct attn_buffer cut;  /* at most LABEL_COLUMNS wide */
    bool was_cut;
};

/* The labels of one axis in newly allocated memory, NULL when there is none. */
struct shown_label *shown_labels_create(const char *const *labels, size_t count);
void shown_labels_release(struct shown_label *labels, size_t count); /* NULL is allowed */

#endif
