/* Heads of a model by name. */
#ifndef ATTN_PROBE_LOOK_HEADS_H
#define ATTN_PROBE_LOOK_HEADS_H

#include "probe/look.h"

/* Refuses the first that the model has not, by name: "the model has 6 layers of 12 heads, counted
 * from 0: there is no L6H0". */
bool look_heads_check(const struct look_head *heads, size_t count,
                      const struct text_model_settings *model, struct attn_error *error);

#endif
