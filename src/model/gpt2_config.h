/* The settings of a GPT-2: config.json of a Hugging Face directory. */
#ifndef ATTN_MODEL_GPT2_CONFIG_H
#define ATTN_MODEL_GPT2_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "nn/activation.h"

struct gpt2_config {
    int64_t vocabulary;         /* vocab_size */
    int64_t hidden;             /* n_embd */
    int64_t layers;             /* n_layer */
    int64_t heads;              /* n_head; divides hidden */
    int64_t inner;              /* n_inner, 4·hidden where null or absent */
    int64_t positions;          /* n_positions, whatever n_ctx says */
    float norm_epsilon;         /* layer_norm_epsilon, 1e-5 where absent */
    float dropout;              /* resid_pdrop, 0.1 where absent; learning only */
    enum activation activation; /* activation_function, gelu_new where absent */
};

/* Reads DIRECTORY/config.json. A missing field, another model_type, an unknown activation and any
 * setting that is not implemented (unscaled scores, cross attention, a head of its own, …) are
 * refused by name: "DIRECTORY/config.json has no n_head". */
bool gpt2_config_read(struct gpt2_config *config, const char *directory, struct attn_error *error);

/* Writes it as Transformers' GPT2LMHeadModel has it, whole or not at all. end_id is the id of the
 * end token, −1 for none. */
bool gpt2_config_write(const struct gpt2_config *config, int32_t end_id, const char *directory,
                       struct attn_error *error);

#endif
