/* Text of a model that has learned: one token after another, each drawn from the likeliest. */
#ifndef ATTN_TRAIN_SAMPLE_H
#define ATTN_TRAIN_SAMPLE_H

#include "model/language_model.h"

struct sample_settings {
    int64_t window;     /* tokens that the model sees at most */
    double temperature; /* > 0: logits are divided by it */
    int64_t top;        /* the likeliest tokens, of which one is drawn; ≥ 1 */
    uint64_t seed;
    int64_t limit; /* ids beyond it are never drawn: the tokenizer's size */
};

/* ids[count] from ids[0..begun−1], begun ≥ 1, which are given. */
bool sample_tokens(struct language_model *model, const struct compute *compute,
                   const struct sample_settings *settings, int64_t begun, int64_t count,
                   int32_t *ids, struct attn_error *error);

/* One of the `top` largest logits[count], at random by the softmax of their quotients with the
 * temperature; `chance` is uniform in 0..1. Of equal logits the first go first. places[count] is
 * changed. */
int32_t sample_draw(const float *logits, int64_t count, double temperature, int64_t top,
                    double chance, int32_t *places);

#endif
