/* A look as lines of text: for each word the words that it looks at most. */
#ifndef ATTN_CMD_LOOK_LINES_H
#define ATTN_CMD_LOOK_LINES_H

#include "base/buffer.h"
#include "draw/attention_map.h"
#include "draw/terminal.h"

struct look_lines {
    const bool *rows; /* [map->rows]: which rows are shown; NULL for all */
    size_t top;       /* how many keys a row shows at most */
    bool self;        /* a word itself stands in its ranking */
    bool causal;      /* words behind a word do not: the model cannot look at them */
    bool renormalize; /* a row is divided by its sum over what may stand in its ranking */
    enum terminal_color color;
};

/* Appends, where the numbers are other than weights, a line that says what they are; then a block
 * for each panel, with its title where there are several; in it for each shown row
 * its label and, indented, its ranking. The label is left out where one row is asked for and shown.
 * Bars of all blocks have one scale. */
bool look_lines_add(const struct attention_map *map, const struct look_lines *settings,
                    struct attn_buffer *out, struct attn_error *error);

#endif
