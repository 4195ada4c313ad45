/* A file of prompts, a line each: several are written on side by side. */
#ifndef ATTN_CMD_GENERATE_PROMPTS_H
#define ATTN_CMD_GENERATE_PROMPTS_H

#include "generate_written.h"

/* Prints a line of JSON for each prompt, in order. All are encoded before anything is written: one
 * that is empty or too long is told by its line. Prompt n, from 0, draws with the seed + n. */
bool generate_prompts_run(struct generator *generator, const struct input *input,
                          struct attn_error *error);

#endif
