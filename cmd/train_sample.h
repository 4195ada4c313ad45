/* A few words of a GPT that has learned. */
#ifndef ATTN_CMD_TRAIN_SAMPLE_H
#define ATTN_CMD_TRAIN_SAMPLE_H

#include "train/training.h"

/* Prints `count` tokens of a new line of the text: temperature 0.8, the 40 likeliest, drawn by the
 * training's seed. */
bool train_sample_print(struct training *training, int64_t count, struct attn_error *error);

#endif
