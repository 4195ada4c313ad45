/* Time that only goes forward. */
#ifndef ATTN_BASE_CLOCK_H
#define ATTN_BASE_CLOCK_H

#include <time.h>

/* Seconds since some moment in the past. */
static inline double attn_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
