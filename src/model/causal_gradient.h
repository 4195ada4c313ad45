/* The way back through a GPT-2 or a Llama: see text_gradient.h. */
#ifndef ATTN_MODEL_CAUSAL_GRADIENT_H
#define ATTN_MODEL_CAUSAL_GRADIENT_H

#include "model/causal_model.h"
#include "model/text_gradient.h"

/* GRADIENT_NEXT_WORD of ids[tokens]. Refusals as those of causal_session_read with a session that
 * has room for the text. */
bool causal_gradient_run(const struct causal_model *model, const struct compute *compute,
                         int64_t tokens, const int32_t *ids,
                         const struct gradient_observer *observer, struct gradient_subject *subject,
                         struct attn_error *error);

#endif
