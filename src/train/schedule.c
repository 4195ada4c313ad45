#include "train/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

double schedule_rate(const struct schedule *schedule, int64_t done)
{
    if (done < schedule->warmup)
        return schedule->peak * (double)done / (double)schedule->warmup;
    if (done >= schedule->total)
        return schedule->last;
    double progress =
        (double)(done - schedule->warmup) / (double)(schedule->total - schedule->warmup);
    double share =
        schedule->kind == SCHEDULE_COSINE ? (1.0 + cos(pi * progress)) / 2.0 : 1.0 - progress;
    return schedule->last + (schedule->peak - schedule->last) * share;
}
