/* A layer of GPT-2 in a pass: see struct language_kind. */
#ifndef ATTN_MODEL_GPT2_LAYER_H
#define ATTN_MODEL_GPT2_LAYER_H

#include "model/language_pass.h"

bool gpt2_layer(struct language_pass *pass, int64_t n, struct attn_error *error);
bool gpt2_layer_backward(struct language_pass *pass, int64_t n, float *dx,
                         struct attn_error *error);

#endif
