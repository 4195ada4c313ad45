/* Texts in a page's data: JSON strings of what label_show gives. */
#ifndef ATTN_DRAW_PAGE_LABEL_H
#define ATTN_DRAW_PAGE_LABEL_H

#include "base/buffer.h"

/* NULL is null. */
void page_text_add(const char *text, size_t size, struct attn_buffer *out);

/* [labels] */
void page_labels_add(const char *const *labels, size_t count, struct attn_buffer *out);

#endif
