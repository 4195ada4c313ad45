/* The folder that a training makes: a model as Transformers lays it out, and what is beside it. */
#ifndef ATTN_TRAIN_TRAINING_FOLDER_H
#define ATTN_TRAIN_TRAINING_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { FOLDER_TOKENIZER_FILES = 7 };

struct training_folder {
    const char *path;
    bool made;                            /* by training_folder_open */
    bool ours;                            /* it was free of any model */
    bool written[FOLDER_TOKENIZER_FILES]; /* which of the tokenizer's files */
    bool locked;                          /* no other training takes it meanwhile */
    int file;                             /* the folder, open while it is locked */
};

/* Makes the folder where it is not there. Refused: one that holds a model or a training, a file of
 * that name, a place that cannot be written to, a folder that another process trains in. The path
 * outlives the struct. */
bool training_folder_open(struct training_folder *folder, const char *path,
                          struct attn_error *error);

/* The folder of a training that goes on. Refused: one that another process trains in. */
bool training_folder_reopen(struct training_folder *folder, const char *path,
                            struct attn_error *error);

/* Lets others have it. Zeros are allowed. */
void training_folder_close(struct training_folder *folder);

/* Writes tokenizer.json. */
bool training_folder_add_tokenizer(struct training_folder *folder, const char *json, size_t size,
                                   struct attn_error *error);

/* Copies the files of a model's tokenizer, as many as its directory has. */
bool training_folder_copy_tokenizer(struct training_folder *folder, const char *directory,
                                    struct attn_error *error);

/* Removes what was written since and the folder where it was made: the training does not begin. */
void training_folder_undo(struct training_folder *folder);

#endif
