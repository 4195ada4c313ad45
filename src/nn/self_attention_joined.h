/* The projections of X as one layer, X·[Wq; Wk; Wv]ᵀ, where their weights and biases are parts of
 * one matrix and one vector: GPT-2's c_attn, PyTorch's in_proj_weight. One product of three times
 * the width takes less time than three products. */
#ifndef ATTN_NN_SELF_ATTENTION_JOINED_H
#define ATTN_NN_SELF_ATTENTION_JOINED_H

#include <stdbool.h>

#include "nn/self_attention.h"

enum { SELF_ATTENTION_PARTS = 3 }; /* query, key, value, in this order */

struct joined_projection {
    bool forward;        /* whether the parts lie so that `layer` is all of them */
    bool backward;       /* and their gradients lie like them, the query's first */
    struct linear layer; /* width to 3·heads·d */
};

/* gradient may be NULL: `backward` is then false. */
struct joined_projection self_attention_join(const struct self_attention *layer,
                                             const struct self_attention_gradient *gradient);

#endif
