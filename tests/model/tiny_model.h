/* Small models as directories on the disk: those of models.json, with whatever a test changes in
 * them. */
#ifndef ATTN_TESTS_TINY_MODEL_H
#define ATTN_TESTS_TINY_MODEL_H

#include <jansson.h>
#include <stdbool.h>

/* How tensors are written. */
enum tiny_storage {
    TINY_F32,
    TINY_F32_MISALIGNED, /* the data begin at an odd byte */
    TINY_F64,
    TINY_BF16 /* exact only for numbers of at most 8 bits */
};

/* Both may be edited before it is saved. */
struct tiny_model {
    json_t *config;  /* config.json */
    json_t *tensors; /* NAME: {"shape", "data"} */
    enum tiny_storage storage;
};

struct tiny_model tiny_model_read(const char *name); /* a model of cases/models.json */
void tiny_model_free(struct tiny_model *model);

/* Puts `prefix` before every name, and gamma and beta in place of a norm's weight and bias. */
void tiny_model_rename(struct tiny_model *model, const char *prefix, bool old_norms);

/* A new folder with config.json and model.safetensors: see base/scratch_folder.h. */
char *tiny_model_save(const struct tiny_model *model);

#endif
