/* From the last layer to words and their losses. */
#ifndef ATTN_MODEL_LANGUAGE_HEAD_H
#define ATTN_MODEL_LANGUAGE_HEAD_H

#include "model/language_pass.h"

/* Adds the losses of the tokens that have a label to *sum; no other token is computed. When the
 * pass learns, memory->dx [tokens][width] becomes the gradient of the last layer's output. Logits
 * are made, used and forgotten in blocks of rows. */
bool language_head_lose(struct language_pass *pass, const int32_t *labels,
                        struct cross_entropy *sum, struct attn_error *error);

/* logits[count][vocabulary] of the tokens places[count], rising. */
void language_head_tell(struct language_pass *pass, const int64_t *places, int64_t count,
                        float *logits);

/* The same of x[count][width], outputs of the last layer; count ≤ pass->tokens. */
void language_head_tell_rows(struct language_pass *pass, const float *x, int64_t count,
                             float *logits);

#endif
