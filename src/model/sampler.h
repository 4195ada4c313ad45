/* From logits to the next token. */
#ifndef ATTN_MODEL_SAMPLER_H
#define ATTN_MODEL_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/likeliest.h"

/* Applied in this order: penalty, top-k, top-p, min-p, temperature. Top-p and min-p go by
 * probabilities at temperature 1, top-p by those among what top-k left. */
struct sampler_settings {
    double repeat_penalty; /* > 0: a seen token's logit is divided by it, or multiplied where it is
                              negative, once (N. Keskar et al., "CTRL" (2019), 4.1); 1: off */
    int64_t repeat_last;   /* of so many last tokens; 0: off, −1: of all */
    int64_t top_k;         /* the likeliest k; 0: all */
    double top_p;          /* ≥ 0: the fewest likeliest tokens, but at least one, whose
                              probabilities reach it (A. Holtzman et al., 2019); ≥ 1: all */
    double min_p;          /* 0..1: tokens of at least min_p times the likeliest's probability */
    double temperature;    /* logits are divided by it at the end; 0: always the likeliest token, of
                              equal ones the first */
    uint64_t seed;
    bool log_probabilities; /* whether sampler_draw tells them, which takes a sum over all logits */
};

/* Defaults of the tool: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, penalty 1 of the
 * last 64, seed 0, with log-probabilities. */
void sampler_settings_init(struct sampler_settings *settings);

struct sampler;

/* For logits[vocabulary], 1..INT32_MAX. Refuses settings that are out of range, NaN too, by name:
 * "the temperature is not a number". */
bool sampler_create(struct sampler **sampler, const struct sampler_settings *settings,
                    int64_t vocabulary, struct attn_error *error);
void sampler_destroy(struct sampler *sampler); /* NULL is allowed */

/* What is left of logits[vocabulary] after `seen[seen_count]` (the text so far, all of it): the
 * candidates, likeliest first, of equal ones the first. They belong to the sampler until its next
 * call. A logit of −inf is no candidate. Refuses logits of which none is finite ("no token has a
 * finite logit"), +inf and NaN. At temperature 0 there is one candidate, of probability 1. */
bool sampler_candidates(struct sampler *sampler, const float *logits, const int32_t *seen,
                        int64_t seen_count, const struct candidate **candidates, int64_t *count,
                        struct attn_error *error);

/* A token and ln of its probability under the model's own distribution: softmax(logits), before all
 * of the above. The n-th draw of a sampler depends on seed, n and its arguments alone. */
struct drawn_token {
    int32_t id;
    double log_probability; /* NaN where the settings leave it out */
};
bool sampler_draw(struct sampler *sampler, const float *logits, const int32_t *seen,
                  int64_t seen_count, struct drawn_token *token, struct attn_error *error);

#endif
