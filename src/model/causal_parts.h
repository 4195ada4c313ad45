/* What the files of causal_model.h share: a model's parts, wherever they come from. */
#ifndef ATTN_MODEL_CAUSAL_PARTS_H
#define ATTN_MODEL_CAUSAL_PARTS_H

#include "model/causal_model.h"
#include "nn/activation.h"
#include "nn/rope.h"
#include "nn/weight_matrix.h"

/* All that config.json or a GGUF file's metadata say. */
struct causal_configuration {
    struct causal_settings settings; /* weight_bytes is 0 */
    float norm_epsilon;
    enum activation activation; /* between the two matrices of GPT-2's feed-forward block */
    struct rope rope;           /* Llama */
    bool own_head;              /* else the head is the table of words */
    bool attention_bias;        /* each projection of attention has a bias */
    bool inner_bias;            /* each matrix of the feed-forward block has one */
};

/* Each refuses by name what is missing and what is not implemented. */
bool causal_read_llama(struct causal_configuration *configuration, const char *directory,
                       struct attn_error *error); /* llama_config.c */
bool causal_read_gguf(struct causal_configuration *configuration, const struct gguf *file,
                      enum model_kind kind, struct attn_error *error); /* causal_gguf.c */

/* What settings alone tell of the number of weights. */
void causal_count_parameters(struct causal_configuration *configuration);

struct causal_norm {
    const float *gain, *shift; /* [width]; Llama's has no shift */
};

struct causal_linear {
    struct weight_matrix weight;
    const float *bias; /* [out] or NULL */
};

/* heads·head_size numbers of queries, key_heads·head_size of keys and of values. In GPT-2 the three
 * are parts of one matrix; its inner matrices are up and down, without a gate. */
struct causal_layer {
    struct causal_norm attention_norm, inner_norm;
    struct causal_linear query, key, value, output;
    struct causal_linear gate, up, down;
};

struct causal_pass;

/* The order of things in one kind of model. */
struct causal_kind {
    /* Layer n of x, which is all there is between two layers. */
    bool (*layer)(struct causal_pass *pass, int64_t n, struct attn_error *error);
    /* y[rows][width] from x, which y may be. */
    void (*norm)(const struct causal_pass *pass, const struct causal_norm *norm, int64_t rows,
                 const float *x, float *y);
};
extern const struct causal_kind causal_gpt2, causal_llama;

struct causal_model {
    struct causal_configuration configuration;
    const struct causal_kind *kind;
    struct checkpoint *checkpoint; /* of a directory: what the weights point into */

    struct weight_matrix words;     /* [vocabulary][width] */
    struct weight_matrix positions; /* [context][width]; GPT-2, else without data */
    struct causal_layer *layers;
    struct causal_norm final_norm;
    struct weight_matrix head; /* [vocabulary][width]; may be the words */
    struct causal_memory *memory;
};

/* What a model holds beside the file: norms and biases as f32, and matrices that lay transposed. */
struct causal_memory {
    struct causal_memory *next;
    float numbers[]; /* or of another type */
};

/* What the kernels call a stored type; false for one that they do not multiply with. */
bool causal_matrix_type(enum stored_type stored, enum attn_matrix_type *type);

/* Finds and checks all tensors of the model, whose configuration is known, in its checkpoint or in
 * `gguf`. What is in a layer of the file and has no place in the model is refused by name. On
 * failure the model is to be closed. */
bool causal_weights_bind(struct causal_model *model, const struct gguf *gguf,
                         struct attn_error *error);

#endif
