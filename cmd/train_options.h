/* The command line of attn train. */
#ifndef ATTN_CMD_TRAIN_OPTIONS_H
#define ATTN_CMD_TRAIN_OPTIONS_H

#include "options.h"
#include "train/training.h"

struct train_options {
    struct shared_options shared;
    /* All but the processes, and but the checkpoint, which shared.model names. */
    struct training_request request;
    const char *resume;   /* a directory; NULL: a new training */
    int64_t more_steps;   /* --steps beside --resume; 0: those of the checkpoint */
    int64_t stop_after;   /* 0: never */
    int64_t sample;       /* tokens of a sample after training; 0: none */
    const char *sizing;   /* the last option that sizes a new model, or NULL */
    const char *changing; /* the last option that a resume does not take, or NULL */
};

bool train_options_parse(int argc, char **argv, struct train_options *options,
                         struct attn_error *error);

#endif
