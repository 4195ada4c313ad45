/* Measures of a look by name, and how much of one is kept for a page: for `attn look` and `attn
 * serve`. */
#ifndef ATTN_CMD_LOOK_MEASURES_H
#define ATTN_CMD_LOOK_MEASURES_H

#include "probe/look.h"

/* "weights", "norm", "rollout" or "grad"; others are refused with that list. */
bool look_measure_find(const char *name, enum look_measure *measure, struct attn_error *error);
const char *look_measure_name(enum look_measure measure);

/* look_settings.links for a page of so many matrices: 0, all of them, as long as they are no
 * burden, else more links than a page will hold. */
size_t look_page_links(size_t head_count, size_t units);

#endif
