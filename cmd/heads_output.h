/* Where the tables of attn heads go: standard output, a file, or both. */
#ifndef ATTN_CMD_HEADS_OUTPUT_H
#define ATTN_CMD_HEADS_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"

enum heads_form { HEADS_TABLE, HEADS_CSV, HEADS_JSON };

/* Adds what `report` holds in one form, with a line end behind it. */
typedef void heads_render(const void *report, enum heads_form form, struct attn_buffer *out);

struct heads_options;

/* To -o's file by its suffix, and to standard output where that is asked for or no file is. */
bool heads_output(const struct heads_options *options, heads_render *render, const void *report,
                  struct attn_error *error);

/* Text in a column of `width` characters with two spaces before it; UTF-8. */
void heads_add_right(const char *text, size_t width, struct attn_buffer *out);

/* The same at the left edge, without spaces before it. */
void heads_add_left(const char *text, size_t width, struct attn_buffer *out);

#endif
