/* The command line of `attn look`. */
#ifndef ATTN_CMD_LOOK_OPTIONS_H
#define ATTN_CMD_LOOK_OPTIONS_H

#include "map_form.h"
#include "options.h"
#include "probe/look.h"

struct look_options {
    struct shared_options shared;
    const char *pair;        /* NULL for none */
    const char *from;        /* NULL for all words */
    struct look_head *heads; /* [head_count], at least one */
    size_t head_count;
    enum look_unit unit;
    bool special;
    bool self;
    bool renormalize;
    size_t top;
    map_draw *draw; /* the form that -o's suffix asks for; NULL without -o */
};

/* Errors are STATUS_USAGE. Release with look_options_release, also after a failure. */
bool look_options_parse(int argc, char **argv, struct look_options *options,
                        struct attn_error *error);
void look_options_release(struct look_options *options);

#endif
