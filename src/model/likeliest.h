/* The tokens with the largest logits. */
#ifndef ATTN_MODEL_LIKELIEST_H
#define ATTN_MODEL_LIKELIEST_H

#include <stdint.h>

/* A token that may come next. */
struct candidate {
    int32_t id;
    float logit;
    double probability; /* among candidates, as whoever lists them says */
};

/* The `limit` ≥ 1 likeliest of logits[vocabulary], vocabulary ≤ INT32_MAX, into candidates[limit],
 * likeliest first, of equal ones the first, with probability 0. Returns how many there are: logits
 * of −inf, +inf and NaN are none. */
int64_t likeliest_select(const float *logits, int64_t vocabulary, int64_t limit,
                         struct candidate *candidates);

#endif
