/* The loop of a training: batches forward and backward, gradients summed over processes, a step of
 * the optimizer; losses of held-out text and checkpoints between. */
#ifndef ATTN_TRAIN_TRAINER_H
#define ATTN_TRAIN_TRAINER_H

#include "train/training.h"

/* Told in the order of the steps. Functions may be NULL. */
struct trainer_watch {
    /* A step is done; rank 0 only. */
    void (*step)(void *user, const struct training *training, const struct log_row *row);
    /* A checkpoint is written, and the log up to it; rank 0 only. */
    bool (*saved)(void *user, const struct training *training, struct attn_error *error);
    /* Whether to end after this step; asked in every process, one that says so ends all. */
    bool (*interrupted)(void *user);
    void *user;
};

enum trainer_end {
    TRAINER_DONE,       /* all steps */
    TRAINER_STOPPED,    /* `limit` steps */
    TRAINER_INTERRUPTED /* the watch said so */
};

struct trainer_result {
    enum trainer_end end;
    double loss;                       /* of the last step; NaN where there was none */
    double held_out;                   /* of the last evaluation; NaN where there was none */
    int64_t steps, tokens;             /* of this run; tokens over all processes */
    double seconds;                    /* that they took, without evaluations and checkpoints */
    struct language_model_times times; /* of this process */
};

/* Takes steps until all are done, or `limit` (0: no limit) are, or the watch interrupts, and leaves
 * a checkpoint of the last in each case. A new training is saved before its first step too.
 *
 * Fails, with the last checkpoint as it was: a loss or a gradient that is not finite, or a model
 * that could tell no finite loss any more where a checkpoint is due, the step named; a disk that is
 * full; no memory. *alone then is whether other processes still wait for this one. */
bool trainer_run(struct training *training, int64_t limit, const struct trainer_watch *watch,
                 struct trainer_result *result, bool *alone, struct attn_error *error);

#endif
