#include "train_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "output.h"

enum { BAR_WIDTH = 24 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void train_progress_begin(struct train_progress *progress, int64_t step)
{
    *progress = (struct train_progress){.begun = now(), .first = step, .held_out = NAN};
}

/* "0:42", "3:05:00". */
static void format_time(double seconds, char *text, size_t size)
{
    long long whole = seconds < 1e9 ? (long long)(seconds + 0.5) : 1000000000;
    if (whole >= 3600)
        snprintf(text, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, size, "%lld:%02lld", whole / 60, whole % 60);
}

static void show(const struct train_progress *progress, const struct log_row *row, int64_t total,
                 double time)
{
    char bar[BAR_WIDTH + 1], held_out[32] = "", left[32];
    int full = (int)(BAR_WIDTH * row->step / total);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    bar[BAR_WIDTH] = '\0';
    if (isfinite(progress->held_out))
        snprintf(held_out, sizeof held_out, ", held out %.3f", progress->held_out);
    double step = (time - progress->begun) / (double)(row->step - progress->first);
    format_time(step * (double)(total - row->step), left, sizeof left);
    fprintf(stderr, "\rattn train: [%s] %lld of %lld  loss %.3f%s  %.0f tokens/s  %s left\x1b[K",
            bar, (long long)row->step, (long long)total, row->loss, held_out, progress->per_second,
            left);
}

void train_progress_step(struct train_progress *progress, const struct training *training,
                         const struct log_row *row)
{
    const double interval = 0.1, memory = 0.9;
    int64_t total = training->state.settings.schedule.total;
    double time = now();
    if (isfinite(row->held_out))
        progress->held_out = row->held_out;
    progress->per_second = progress->per_second > 0.0
                               ? memory * progress->per_second + (1.0 - memory) * row->per_second
                               : row->per_second;
    if (!progress_is_shown() || (time - progress->shown < interval && row->step < total))
        return;
    progress->shown = time;
    show(progress, row, total, time);
}
