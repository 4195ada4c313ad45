/* The way back through a BERT: see text_gradient.h. */
#ifndef ATTN_MODEL_BERT_GRADIENT_H
#define ATTN_MODEL_BERT_GRADIENT_H

#include "model/bert.h"
#include "model/text_gradient.h"

/* GRADIENT_EMBEDDING of a batch of one text. Refusals as bert_forward's. */
bool bert_gradient_run(const struct bert *model, const struct compute *compute,
                       const struct bert_input *input, const struct gradient_observer *observer,
                       struct gradient_subject *subject, struct attn_error *error);

#endif
