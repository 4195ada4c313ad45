/* Small language models of Transformers' with what they lose on a batch and every gradient:
 * tests/data/models/NAME, made by scripts/golden_language_model.py. */
#ifndef ATTN_TESTS_GOLDEN_LANGUAGE_H
#define ATTN_TESTS_GOLDEN_LANGUAGE_H

#include <jansson.h>

#include "format/safetensors.h"
#include "model/language_model.h"

struct golden_language {
    char *directory;
    struct language_model *model; /* dropout 0 */
    json_t *file;
    struct safetensors *gradients;
    struct language_batch batch;
    struct cross_entropy sum; /* of the batch */
    int64_t vocabulary;

    int64_t *starts; /* what the batch points to */
    int32_t *ids, *labels;
};

struct golden_language golden_language_open(const char *name); /* "gpt2" or "bert" */
void golden_language_close(struct golden_language *golden);

/* The logits of the last token of a sequence, newly allocated. */
float *golden_language_logits(const struct golden_language *golden, int64_t sequence);

/* One pass over the batch whose gradient is that of the mean; dropout as the model has it. */
struct language_model_step golden_language_step(const struct golden_language *golden);

/* language_model_learn; fails the test where it does. */
struct cross_entropy golden_language_learn(const struct golden_language *golden,
                                           const struct compute *compute,
                                           const struct language_batch *batch,
                                           const struct language_model_step *step);

/* All gradients as they are now, newly allocated. */
float *golden_language_copy_gradients(const struct golden_language *golden);

/* |gradients now − others| / |others| */
double golden_language_distance(const struct golden_language *golden, const float *others);

/* Fails unless every gradient is PyTorch's within 1e-5 of its norm. */
void golden_language_check_gradients(const struct golden_language *golden);

#endif
