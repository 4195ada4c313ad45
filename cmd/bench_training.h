/* `attn bench training`: steps of learning a GPT of a given shape, timed. */
#ifndef ATTN_CMD_BENCH_TRAINING_H
#define ATTN_CMD_BENCH_TRAINING_H

#include "verb.h"

/* argv[0] is "bench"; "training" stands among the operands. */
enum status bench_training(int argc, char **argv, struct attn_error *error);

#endif
