/* Expressions of chat templates: the part of Jinja's that ChatML templates are made of. */
#ifndef ATTN_TEXT_JINJA_EXPRESSION_H
#define ATTN_TEXT_JINJA_EXPRESSION_H

#include "text/jinja_scope.h"

/* The value of text[0..size), which is one expression. Known: literals; names of
 * jinja_scope_find and loop (first, last, index, index0, length); .name, ['name'], [number],
 * [number:]; trim and length; % + ~ == != not and or; "is" with defined, undefined, none and
 * string. Whatever else stands there is refused, and so is what Jinja itself refuses: "it uses
 * strftime_now". */
bool jinja_evaluate(struct jinja_scope *scope, const char *text, size_t size,
                    struct jinja_value *value, struct attn_error *error);

#endif
