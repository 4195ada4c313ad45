/* Whether a batch is one that a model can read, and what it gave are numbers. */
#ifndef ATTN_MODEL_MODEL_CHECK_H
#define ATTN_MODEL_MODEL_CHECK_H

#include "base/error.h"
#include "nn/self_attention.h"

/* At least one sequence, each of 1..positions tokens, one behind the other from token 0 on. */
bool model_check_batch(const struct packed_batch *batch, int64_t positions,
                       struct attn_error *error);

/* That every id of a checked batch is in 0..vocabulary−1; names the first that is not. */
bool model_check_ids(const int32_t *ids, int64_t tokens, int64_t vocabulary,
                     struct attn_error *error);

/* Refuses x[count] where one number is not finite. A NaN anywhere on the way through a model makes
 * its row of the last hidden state NaN. */
bool model_check_finite(const float *x, int64_t count, struct attn_error *error);

#endif
