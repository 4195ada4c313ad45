/* A training with all that belongs to it: text, tokenizer, model, optimizer, place. Begun from
 * nothing, from a model, or from a checkpoint; train/trainer.h runs it. */
#ifndef ATTN_TRAIN_TRAINING_H
#define ATTN_TRAIN_TRAINING_H

#include "model/language_model.h"
#include "text/tokenizer.h"
#include "train/batches.h"
#include "train/corpus.h"
#include "train/optimizer.h"
#include "train/processes.h"
#include "train/state.h"
#include "train/training_folder.h"
#include "train/training_log.h"

struct training {
    const char *directory;
    struct processes *processes; /* of the caller */
    struct training_state state; /* settings and place */
    struct training_folder folder;
    struct training_log log; /* rank 0 only */
    struct corpus corpus;
    struct tokenizer *tokenizer;
    struct compute compute;
    struct language_model *model;
    struct optimizer optimizer;
    struct batches batches;
};

/* What a new training is made from. Strings and processes outlive it. */
struct training_request {
    const char *directory;  /* to be written */
    const char *corpus;     /* a file, or "-" */
    const char *checkpoint; /* a model's directory that is taught on, or NULL */
    /* Of a new model: layers, heads and width; vocabulary is how many entries its tokenizer shall
     * have, 0 for bytes alone. The rest comes from the settings. Unused with a checkpoint. */
    struct language_model_settings sizes;
    struct train_settings settings;
    bool context_is_given;   /* else a checkpoint's context may be shorter */
    bool objective_is_given; /* else a checkpoint's kind chooses it */
    int threads;
    struct processes *processes;
};

/* All of what may be refused is, before the first step, in all processes alike: nothing is left in
 * the directory then. */
bool training_begin(struct training *training, const struct training_request *request,
                    struct attn_error *error);

/* Goes on where DIRECTORY's checkpoint stands. The corpus must be the text that it was begun with.
 * `steps` is 0, or a number of steps that is not less than the checkpoint's. */
bool training_resume(struct training *training, const char *directory, const char *corpus,
                     int64_t steps, int threads, struct processes *processes,
                     struct attn_error *error);

/* Writes the checkpoint; rank 0 only. The model first: its files are whole at any time, and
 * training.safetensors alone is what a resume starts from. */
bool training_save(const struct training *training, struct attn_error *error);

void training_close(struct training *training); /* zeros are allowed */

#endif
