/* Results on standard output, progress on standard error. */
#ifndef ATTN_CMD_OUTPUT_H
#define ATTN_CMD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Writes the whole buffer to standard output at once. Fails, naming standard output, when the disk
 * is full or the like, and when an allocation of the buffer failed; with an empty message when the
 * reader has closed the pipe: it wanted no more. */
bool output_write(const struct attn_buffer *buffer, struct attn_error *error);
bool output_write_text(const char *text, struct attn_error *error);

/* Standard output is a terminal that shows colours, and NO_COLOR (no-color.org) is not set. */
bool output_has_color(void);

/* Standard error is a terminal: progress may be shown there. */
bool progress_is_shown(void);

/* Shows "attn VERB: done of total units" in place of the line before; progress_end clears it. Both
 * do nothing where progress is not shown. */
void progress_show(const char *verb, size_t done, size_t total, const char *units);
void progress_end(void);

#endif
