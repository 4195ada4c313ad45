/* What the files of bert.h share. */
#ifndef ATTN_MODEL_BERT_PARTS_H
#define ATTN_MODEL_BERT_PARTS_H

#include "model/bert.h"
#include "model/bert_weights.h"

struct bert {
    struct bert_config config;
    struct checkpoint *checkpoint; /* holds the file map that the weights point into */
    struct bert_weights weights;
};

/* What bert_forward refuses before it computes anything. */
bool bert_check_input(const struct bert *model, const struct bert_input *input,
                      struct attn_error *error);

/* x[tokens][hidden]: the norm of word + type + position of each token, which the first layer reads.
 * Positions count from 0 in each sequence. */
void bert_embed(const struct bert *model, const struct compute *compute,
                const struct bert_input *input, float *x);

#endif
