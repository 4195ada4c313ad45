/* Trainings of a second, for tests of the loop. */
#ifndef ATTN_TESTS_TINY_TRAINING_H
#define ATTN_TESTS_TINY_TRAINING_H

#include "train/trainer.h"

struct tiny_training {
    char *folder; /* scratch: the text in it, and what trainings make */
    char *corpus; /* the text's path */
    struct processes *processes;
    struct training_request request; /* two layers of width 16; bytes, or words */
};

/* A request that can be changed before it is used; its directory is NULL. */
struct tiny_training tiny_training_create(enum train_objective objective);
void tiny_training_destroy(struct tiny_training *tiny);

/* The path of FOLDER/NAME; newly allocated. */
char *tiny_training_path(const struct tiny_training *tiny, const char *name);

/* Begins a training in FOLDER/NAME and takes `limit` steps (0: all), or resumes it. Fails the test
 * where that fails. The loss of the last step goes to *loss, which may be NULL. */
void tiny_training_run(struct tiny_training *tiny, const char *name, int64_t limit, double *loss);
void tiny_training_resume(struct tiny_training *tiny, const char *name, int64_t limit);

/* FOLDER/NAME/FILE is the same in both trainings, byte for byte. */
void assert_same_file(const struct tiny_training *tiny, const char *one, const char *other,
                      const char *file);

#endif
