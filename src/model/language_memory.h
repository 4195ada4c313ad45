/* The memory that passes of a language model work in: what the layers keep for the backward pass,
 * and what each needs while it computes. One block, sized for the largest batch so far. */
#ifndef ATTN_MODEL_LANGUAGE_MEMORY_H
#define ATTN_MODEL_LANGUAGE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

struct language_model;

/* Kept by a layer. Outputs of norms and activations are not: they are computed again, which costs
 * less than a hundredth of a step and saves a third of the memory. */
struct layer_memory {
    float *x;         /* [tokens][width]: the layer's input */
    float *next;      /* [tokens][width]: its output */
    float *attention; /* what self_attention_learn saves */
    float *middle;    /* [tokens][width]: x + attention(x), before BERT's norm */
    float *inner;     /* [tokens][inner]: before the activation */
    float *end;       /* [tokens][width]: the second sum before its norm; BERT only */
};

/* Layers, embeddings and head use scratch one after the other; within the head, its own steps need
 * two beside those of language_head.c. */
enum { WIDE_HEAD = 3, WIDE_SCRATCH = 5 };

struct language_memory {
    struct attn_workspace block;
    int64_t tokens; /* room for so many; 0 while there is none */
    bool learning;  /* every layer has its own memory; else all share one */

    struct layer_memory first; /* of layer 0; those of the others follow at these distances */
    int64_t wide_stride, inner_stride, attention_stride;

    float *wide[WIDE_SCRATCH]; /* [tokens][width] each, of nobody for long */
    float *active, *d_active;  /* [tokens][inner] */
    float *attention;          /* self_attention_backward's workspace */
    float *dx;                 /* [tokens][width]: the gradient on its way down */
    float *logits;             /* [logit_rows][logit_stride] */
    int64_t logit_rows, logit_stride;
    int64_t *rows;      /* [tokens]: those that have a label */
    int32_t *labels;    /* [tokens]: theirs */
    int32_t *positions; /* [tokens]: each one's place in its sequence */
    int32_t *zeros;     /* [tokens] */
};

/* Makes room for a batch of `tokens` tokens. */
bool language_memory_reserve(struct language_memory *memory, const struct language_model *model,
                             int64_t tokens, bool learning, struct attn_error *error);
void language_memory_release(struct language_memory *memory);

struct layer_memory language_memory_layer(const struct language_memory *memory, int64_t layer);

#endif
