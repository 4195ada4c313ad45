/* A layer of BERT in a pass: see struct language_kind. */
#ifndef ATTN_MODEL_BERT_LAYER_H
#define ATTN_MODEL_BERT_LAYER_H

#include "model/language_pass.h"

bool bert_layer(struct language_pass *pass, int64_t n, struct attn_error *error);
bool bert_layer_backward(struct language_pass *pass, int64_t n, float *dx,
                         struct attn_error *error);

#endif
