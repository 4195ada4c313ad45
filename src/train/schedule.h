/* The learning rate of each step: up from 0 to its peak, then down along a line or a cosine. */
#ifndef ATTN_TRAIN_SCHEDULE_H
#define ATTN_TRAIN_SCHEDULE_H

#include <stdint.h>

enum schedule_kind {
    SCHEDULE_COSINE, /* I. Loshchilov, F. Hutter, 2017, equation 5, one period */
    SCHEDULE_LINEAR
};

struct schedule {
    enum schedule_kind kind;
    double peak;    /* of the rate */
    double last;    /* what it comes down to */
    int64_t warmup; /* steps from 0 to the peak; < total */
    int64_t total;  /* steps to the last rate, which holds from there on */
};

/* The rate of the step that `done` steps stand before, done ≥ 0. The first step of a warm-up has
 * the rate 0, the step after it the peak; step `total` would be the first at the last rate. */
double schedule_rate(const struct schedule *schedule, int64_t done);

#endif
