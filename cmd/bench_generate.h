/* `attn bench generate`: how fast a model reads a prompt and writes behind it. */
#ifndef ATTN_CMD_BENCH_GENERATE_H
#define ATTN_CMD_BENCH_GENERATE_H

#include "verb.h"

/* argv[0] is "bench"; "generate" stands among the operands. */
enum status bench_generate(int argc, char **argv, struct attn_error *error);

#endif
