/* Text of a model that has learned: one token after another, each drawn from the likeliest. */
#ifndef ATTN_TRAIN_SAMPLE_H
#define ATTN_TRAIN_SAMPLE_H

#include "model/language_model.h"
#include "model/sampler.h"

struct sample_settings {
    int64_t window; /* tokens that the model sees at most */
    struct sampler_settings sampler;
    int64_t limit; /* ids beyond it are never drawn: the tokenizer's size */
};

/* ids[count] from ids[0..begun−1], begun ≥ 1, which are given. */
bool sample_tokens(struct language_model *model, const struct compute *compute,
                   const struct sample_settings *settings, int64_t begun, int64_t count,
                   int32_t *ids, struct attn_error *error);

#endif
