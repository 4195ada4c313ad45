/* loss.svg beside a training's checkpoint. */
#ifndef ATTN_CMD_TRAIN_CURVE_H
#define ATTN_CMD_TRAIN_CURVE_H

#include "train/training_log.h"

/* DIRECTORY/loss.svg: the losses of the steps and of the held-out text; nothing without a row. */
bool train_curve_write(const struct training_log *log, const char *directory,
                       struct attn_error *error);

#endif
