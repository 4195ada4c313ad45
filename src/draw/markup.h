/* Text inside XML and HTML. */
#ifndef ATTN_DRAW_MARKUP_H
#define ATTN_DRAW_MARKUP_H

#include "base/buffer.h"

/* Appends `text`, as label_show gives it, with & < > " ' as entities: for content and attributes.
 */
void markup_add_text(struct attn_buffer *out, const char *text);

#endif
