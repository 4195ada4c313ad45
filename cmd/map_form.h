/* Pictures of attention: what is done to the numbers, and the file that they become, by its suffix.
 */
#ifndef ATTN_CMD_MAP_FORM_H
#define ATTN_CMD_MAP_FORM_H

#include "base/buffer.h"
#include "draw/attention_map.h"

typedef bool map_draw(const struct attention_map *map, struct attn_buffer *out,
                      struct attn_error *error);

/* By .json, .npy, .svg, .png or .html; `option` is the option as the message shall call it. */
bool map_form_choose(const char *option, const char *path, map_draw **draw,
                     struct attn_error *error);

/* Draws the map to the file; progress says so. `verb` is the tool's. */
bool map_form_write(const char *verb, const char *path, map_draw *draw,
                    const struct attention_map *map, struct attn_error *error);

/* Divides each row of weights[rows][columns] by its sum: over what is shown, a row sums to 1. A row
 * of zeros stays one. */
void map_renormalize(float *weights, size_t rows, size_t columns);

#endif
