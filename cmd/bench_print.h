/* How results are written. */
#ifndef ATTN_CMD_BENCH_PRINT_H
#define ATTN_CMD_BENCH_PRINT_H

#include "base/buffer.h"
#include "bench_run.h"

/* What the table begins with: the machine, and the heads of the columns. */
void bench_add_heading(struct attn_buffer *out, const struct bench_machine *machine,
                       attn_precision precision);

/* A line of the table. */
void bench_add_row(struct attn_buffer *out, const char *name, const struct bench_result *result);

/* A line of JSON. */
void bench_add_json(struct attn_buffer *out, const char *name, const struct bench_result *result);

#endif
