/* What a training shows while it runs, on standard error where that is a terminal. */
#ifndef ATTN_CMD_TRAIN_PROGRESS_H
#define ATTN_CMD_TRAIN_PROGRESS_H

#include "train/training.h"

struct train_progress {
    double begun, shown; /* seconds of a steady clock; shown: the last time */
    int64_t first;       /* step that the run began behind */
    double held_out;     /* NaN until there is one */
    double per_second;   /* tokens, a mean that forgets */
};

void train_progress_begin(struct train_progress *progress, int64_t step);

/* After a step, at most ten times a second: a bar, the loss, tokens a second and the time left. */
void train_progress_step(struct train_progress *progress, const struct training *training,
                         const struct log_row *row);

#endif
