/* The command line of `attn look`. */
#ifndef ATTN_CMD_LOOK_OPTIONS_H
#define ATTN_CMD_LOOK_OPTIONS_H

#include "map_form.h"
#include "options.h"
#include "probe/look.h"

struct look_options {
    struct shared_options shared;
    const char *pair;        /* NULL for none */
    int64_t generate;        /* tokens that the model writes behind the text; 0: none */
    const char *from;        /* NULL for all words */
    struct look_head *heads; /* [head_count], at least one */
    size_t head_count;
    bool heads_are_named; /* by --head or --layer; else they are the mean of all alone */
    enum look_unit unit;
    bool special;
    bool self;
    bool renormalize;
    size_t top;
    enum look_measure measure;
    struct look_head *ablated; /* [ablated_count]: --ablate, head LOOK_MEAN for a whole layer */
    size_t ablated_count;
    const char **cuts; /* [cut_count]: --cut, "QUERY:KEY", each a WORD or WORD#N as for --from */
    size_t cut_count;
    map_draw *draw; /* the form that -o's suffix asks for; NULL without -o */
};

/* Errors are STATUS_USAGE. Release with look_options_release, also after a failure. */
bool look_options_parse(int argc, char **argv, struct look_options *options,
                        struct attn_error *error);
void look_options_release(struct look_options *options);

#endif
