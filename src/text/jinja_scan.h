/* The pieces of a Jinja template: text, outputs and statements, with white space taken away where
 * the language says so, as Hugging Face has it set (trim_blocks and lstrip_blocks). */
#ifndef ATTN_TEXT_JINJA_SCAN_H
#define ATTN_TEXT_JINJA_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A place in a template; a copy can be gone back to. Start with the source, its size and zeros. */
struct jinja_scan {
    const char *source;
    size_t size;
    size_t at;
    bool trims;   /* the tag before takes the white space behind it */
    bool in_line; /* what stands before `at` in its line is not white space */
};

enum jinja_piece_kind { PIECE_END, PIECE_TEXT, PIECE_OUTPUT, PIECE_STATEMENT };

struct jinja_piece {
    enum jinja_piece_kind kind;
    const char *text; /* of the source; what stands inside a tag, without its signs */
    size_t size;
};

/* Comments are passed over. Fails where a tag has no end. */
bool jinja_scan_next(struct jinja_scan *scan, struct jinja_piece *piece, struct attn_error *error);

#endif
