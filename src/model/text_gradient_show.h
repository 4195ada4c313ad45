/* One layer on the way back, shown to whoever looks on. */
#ifndef ATTN_MODEL_TEXT_GRADIENT_SHOW_H
#define ATTN_MODEL_TEXT_GRADIENT_SHOW_H

#include "model/text_gradient.h"
#include "nn/projected_attention.h"

/* Shows `layer` to the observer, once `d_blended` is known. Numbers that are not finite are
 * refused. */
bool text_gradient_show(const struct projected_attention *attention, int64_t layer,
                        const struct gradient_observer *observer, struct attn_error *error);

#endif
