/* Time as measurements need it. */
#ifndef ATTN_MEASURE_TIMING_H
#define ATTN_MEASURE_TIMING_H

#include <stddef.h>

/* Seconds since some point in the past; never runs backwards. */
double timing_now(void);

/* The median of `count` > 0 numbers, the mean of the middle two for an even count. Sorts them. */
double timing_median(double *values, size_t count);

#endif
