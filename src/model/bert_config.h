/* The settings of a BERT encoder: config.json of a Hugging Face directory. */
#ifndef ATTN_MODEL_BERT_CONFIG_H
#define ATTN_MODEL_BERT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "nn/activation.h"

struct bert_config {
    int64_t vocabulary; /* vocab_size */
    int64_t hidden;     /* hidden_size */
    int64_t layers;     /* num_hidden_layers */
    int64_t heads;      /* num_attention_heads; divides hidden */
    int64_t inner;      /* intermediate_size */
    int64_t positions;  /* max_position_embeddings */
    int64_t types;      /* type_vocab_size */
    float norm_epsilon; /* layer_norm_eps, 1e-12 where absent */
    float dropout;      /* hidden_dropout_prob, 0.1 where absent; learning only */
    enum activation activation;
};

/* Reads DIRECTORY/config.json. A missing field, another model_type, an unknown activation and any
 * setting that is not implemented (relative positions, a decoder, …) are refused by name:
 * "DIRECTORY/config.json: hidden_act snake is not known". */
bool bert_config_read(struct bert_config *config, const char *directory, struct attn_error *error);

/* Writes it as Transformers' BertForMaskedLM has it, whole or not at all. pad_id −1: none. */
bool bert_config_write(const struct bert_config *config, int32_t pad_id, const char *directory,
                       struct attn_error *error);

#endif
