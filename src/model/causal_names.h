/* How files spell the tensors of a model that tells the next token. */
#ifndef ATTN_MODEL_CAUSAL_NAMES_H
#define ATTN_MODEL_CAUSAL_NAMES_H

#include <stdbool.h>

#include "model/model_source.h"

/* Names of parts, without .weight and .bias; NULL for what the kind lacks. */
struct causal_names {
    const char *prefix; /* that Hugging Face's names may begin with, but the head's; else "" */
    const char *words, *positions, *final_norm, *head;
    const char *layer; /* what stands before the number of a layer */

    const char *attention_norm, *inner_norm;
    const char *query, *key, *value; /* or */
    const char *joined;              /* all three, one below the other */
    const char *output, *gate, *up, *down;

    bool in_out;            /* matrices of layers are [in][out]: Conv1D */
    const char *buffers[2]; /* ends of names within layers that are no weights */
};

const struct causal_names *causal_names_of(enum model_kind kind, bool gguf);

#endif
