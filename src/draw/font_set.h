/* The fonts of the machine, as one: each character comes from the first that has it. */
#ifndef ATTN_DRAW_FONT_SET_H
#define ATTN_DRAW_FONT_SET_H

#include <ft2build.h>
#include FT_FREETYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct font_set;

/* The fonts that fontconfig sorts for "sans-serif". Without any the error names a package that has
 * some. Release with font_set_close; on failure *fonts is NULL. */
bool font_set_open(struct font_set **fonts, struct attn_error *error);
void font_set_close(struct font_set *fonts); /* NULL is allowed */

/* A glyph in a face that font_set keeps open. */
struct font_glyph {
    FT_Face face; /* NULL: no font has the character */
    FT_UInt index;
};

struct font_glyph font_set_find(struct font_set *fonts, int32_t code);

#endif
