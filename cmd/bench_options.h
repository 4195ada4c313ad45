/* The command line of `attn bench attention`. */
#ifndef ATTN_CMD_BENCH_OPTIONS_H
#define ATTN_CMD_BENCH_OPTIONS_H

#include "attn.h"
#include "bench_cases.h"
#include "options.h"

enum { BENCH_FILTERS = 32 };

struct bench_options {
    struct shared_options shared;
    const char *filters[BENCH_FILTERS];
    int filter_count;
    attn_isa isa; /* ATTN_ISA_BEST where it is not given */
    attn_precision precision;
    bool explain;
};

/* Errors are STATUS_USAGE; each filter is in the name of at least one case. */
bool bench_options_parse(int argc, char **argv, struct bench_options *options,
                         struct attn_error *error);

/* No filter is given, or the case's name holds one. */
bool bench_options_want(const struct bench_options *options, const struct bench_case *shape);

#endif
