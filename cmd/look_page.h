/* How much of a look its page is given: for `attn look` and `attn serve`. */
#ifndef ATTN_CMD_LOOK_PAGE_H
#define ATTN_CMD_LOOK_PAGE_H

#include "probe/look.h"

/* All heads of a model: the mean of all, then of each layer, then each head; for a measure without
 * single heads, the means alone. [*count], newly allocated; NULL when there is no memory. */
struct look_head *look_page_heads(const struct text_model_settings *model,
                                  enum look_measure measure, size_t *count);

/* Whether a page has room for a link or two of each row of so many matrices. */
bool look_page_holds(size_t head_count, size_t units);

/* How many of look_page_heads' `head_count` a page has room for: all, or the means of layers with
 * that of all, or this one, which are the first. */
size_t look_page_fit(const struct text_model_settings *model, size_t head_count, size_t units);

/* look_settings.links of so many matrices: 0, all of them, as long as they are no burden, else more
 * links than a page will hold. */
size_t look_page_links(size_t head_count, size_t units);

/* Whether queries, keys and values of a text may have room: those of long ones would be left out
 * of the page. */
bool look_page_vectors(const struct text_model_settings *model, size_t tokens);

#endif
