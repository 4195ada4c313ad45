/* Pictures of attention: the file that a map becomes, by its suffix. */
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

#endif
