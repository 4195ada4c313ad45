/* The command line of attn heads. */
#ifndef ATTN_CMD_HEADS_OPTIONS_H
#define ATTN_CMD_HEADS_OPTIONS_H

#include "heads_output.h"
#include "options.h"

enum { HEADS_ALL_LAYERS = -1 };

/* What the heads are looked at with. */
enum heads_source {
    HEADS_TEXTS,   /* texts: operands or -f */
    HEADS_REPEAT,  /* random tokens twice */
    HEADS_TREEBANK /* sentences with their dependencies */
};

struct heads_options {
    struct shared_options shared;
    enum heads_source source;
    const char *treebank; /* --eval, or NULL */
    int64_t repeat;       /* --repeat, or 0 */
    uint64_t seed;
    bool seed_is_given;
    bool truncate;
    int64_t layer;          /* the only one that is told of, or HEADS_ALL_LAYERS */
    const char *sort;       /* --sort as given, or NULL */
    size_t sort_column;     /* where sort is not NULL */
    bool smallest_first;    /* --sort -COLUMN */
    bool csv;               /* on standard output */
    enum heads_form o_form; /* of -o's file, where that is given */
};

/* All errors are STATUS_USAGE. */
bool heads_options_parse(int argc, char **argv, struct heads_options *options,
                         struct attn_error *error);

#endif
