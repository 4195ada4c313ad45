/* DIRECTORY/training.safetensors: all that a training needs to go on as if it had not ended. One
 * file, written whole or not at all, so that weights, means and place belong together.
 *
 * Tensors weights/NAME, first/NAME and second/NAME for each parameter NAME: the values and AdamW's
 * two means. The metadata hold the settings, the place and a checksum of all of it. Random numbers
 * are functions of seed and place (train/random.h): there is no state of a generator. */
#ifndef ATTN_TRAIN_STATE_H
#define ATTN_TRAIN_STATE_H

#include "model/parameters.h"
#include "train/optimizer.h"
#include "train/settings.h"

struct training_state {
    struct train_settings settings;
    int64_t step;   /* steps done */
    int64_t tokens; /* seen in them, over all processes */
    uint64_t corpus_checksum;
    int64_t corpus_size; /* bytes */
};

/* Writes DIRECTORY/training.safetensors, whole or not at all: a failure leaves the one that was. */
bool training_state_write(const struct training_state *state, const char *directory,
                          const struct parameters *parameters, const struct optimizer *optimizer,
                          struct attn_error *error);

struct training_file;

/* Opens the file and reads what is no tensor. A file that another program wrote, or a part of one,
 * is refused. */
bool training_file_open(struct training_file **file, const char *directory,
                        struct training_state *state, struct attn_error *error);
void training_file_close(struct training_file *file); /* NULL is allowed */

/* Reads values and means into parameters and optimizer, which were made for the model beside it,
 * and sets the optimizer's steps. Refused: tensors that are not those of the parameters, and a
 * checksum that is not that of the file. */
bool training_file_load(struct training_file *file, const struct training_state *state,
                        struct parameters *parameters, struct optimizer *optimizer,
                        struct attn_error *error);

#endif
