/* training.csv: a row a step, and what curves are drawn from. */
#ifndef ATTN_TRAIN_TRAINING_LOG_H
#define ATTN_TRAIN_TRAINING_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct log_row {
    int64_t step;      /* from 1 on */
    double loss;       /* mean over the step's batch, before its update */
    double held_out;   /* mean over the held-out text, after its update; NaN: not evaluated */
    double rate;       /* of learning */
    double norm;       /* of the gradient, before clipping */
    double per_second; /* tokens */
};

struct training_log {
    char *path;
    struct log_row *rows;
    size_t count, capacity;
};

/* Opens DIRECTORY/training.csv, keeping of it the rows up to step `last` (0: none, and a file is
 * begun): what came behind a checkpoint comes again. The file is written whole or not at all. A
 * missing file is begun; one with other columns or rows that cannot be read is refused. */
bool training_log_open(struct training_log *log, const char *directory, int64_t last,
                       struct attn_error *error);
void training_log_close(struct training_log *log); /* zeros are allowed */

/* Adds a row to the file's end; a row that does not fit on the disk is taken back from the file. */
bool training_log_add(struct training_log *log, const struct log_row *row,
                      struct attn_error *error);

#endif
