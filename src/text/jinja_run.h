/* Chat templates are programs in Jinja. This runs those that need no more of it than for, if, set
 * and the expressions of jinja_expression.h, and refuses the others. */
#ifndef ATTN_TEXT_JINJA_RUN_H
#define ATTN_TEXT_JINJA_RUN_H

#include "base/buffer.h"
#include "text/jinja_scope.h"

/* Appends what the template writes for messages[0..count), count ≥ 1, with add_generation_prompt
 * as `asks` says. The error is half a sentence, which says of the template what "it" does. */
bool jinja_run(const char *source, size_t size, const struct jinja_message *messages, size_t count,
               bool asks, struct attn_buffer *out, struct attn_error *error);

#endif
