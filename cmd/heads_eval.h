/* attn heads --eval: heads beside the dependencies of a treebank. */
#ifndef ATTN_CMD_HEADS_EVAL_H
#define ATTN_CMD_HEADS_EVAL_H

#include "heads_options.h"
#include "probe/dependency_scores.h"
#include "session.h"

/* Reads the treebank, runs the model over its sentences and writes the table. The session has its
 * tokenizer; the model is opened when all sentences are known to fit. */
bool heads_eval(const struct heads_options *options, struct session *session,
                struct attn_error *error);

struct heads_eval_report {
    const struct heads_options *options;
    const char *model;
    const struct treebank *treebank;
    const struct dependency_scores *scores;
    int64_t first_layer, last_layer;
};

/* `report` is a struct heads_eval_report. */
heads_render heads_eval_render;

#endif
