/* The verbs of the tool, and what a run of one returns. */
#ifndef ATTN_CMD_VERB_H
#define ATTN_CMD_VERB_H

#include "base/error.h"

/* Exit statuses. STATUS_USAGE: the command line alone is wrong, or a variable that stands for an
 * option (ATTN_THREADS). STATUS_FAILURE: what needs the model, the text or the disk to be seen.
 * STATUS_INTERRUPTED: a signal ended it, after what was done had been saved. */
enum status { STATUS_SUCCESS = 0, STATUS_FAILURE = 1, STATUS_USAGE = 2, STATUS_INTERRUPTED = 130 };

struct verb {
    const char *name;
    const char *manual; /* what `attn help VERB` prints */
    /* argv[0] is the verb, argv[argc] is NULL. Not STATUS_SUCCESS: *error says why; an empty
     * message means that there is nothing to say (a reader that closed its pipe). */
    enum status (*run)(int argc, char **argv, struct attn_error *error);
};

/* By name, or NULL with an error that lists the verbs. */
const struct verb *verb_find(const char *name, struct attn_error *error);

enum status verb_look(int argc, char **argv, struct attn_error *error);
enum status verb_heads(int argc, char **argv, struct attn_error *error);
enum status verb_serve(int argc, char **argv, struct attn_error *error);
enum status verb_embed(int argc, char **argv, struct attn_error *error);
enum status verb_tokenize(int argc, char **argv, struct attn_error *error);
enum status verb_generate(int argc, char **argv, struct attn_error *error);
enum status verb_fill(int argc, char **argv, struct attn_error *error);
enum status verb_train(int argc, char **argv, struct attn_error *error);
enum status verb_info(int argc, char **argv, struct attn_error *error);
enum status verb_bench(int argc, char **argv, struct attn_error *error);
enum status verb_help(int argc, char **argv, struct attn_error *error);

#endif
