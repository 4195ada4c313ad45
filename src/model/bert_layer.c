/* A layer of BERT that learns: each half adds to its input, and a norm follows.
 *
 *     m = norm₁(x + drop(attention(x)))
 *     y = norm₂(m + drop(W₂·activation(W₁·m)))
 *
 * J. Devlin et al., "BERT" (2018); the order is that of A. Vaswani et al. (2017), 3.1. */
#include "model/bert_layer.h"

#include <string.h>

bool bert_layer(struct language_pass *pass, int64_t n, struct attn_error *error)
{
    const struct language_layer *layer = &pass->model->layers[n];
    const struct layer_memory kept = language_memory_layer(pass->memory, n);
    float *m = pass->memory->wide[0], *part = pass->memory->wide[1];

    if (!pass_attention(pass, n, kept.x, part, error))
        return false;
    pass_dropout(pass, n, PASS_ATTENTION, part);
    pass_add(pass, kept.x, part, kept.middle);
    pass_norm(pass, &layer->attention_norm, pass->tokens, kept.middle, m);

    pass_feed_forward(pass, n, m, part);
    pass_dropout(pass, n, PASS_FEED_FORWARD, part);
    pass_add(pass, m, part, kept.end);
    pass_norm(pass, &layer->inner_norm, pass->tokens, kept.end, kept.next);
    return true;
}

bool bert_layer_backward(struct language_pass *pass, int64_t n, float *dx, struct attn_error *error)
{
    const struct language_layer *layer = &pass->model->layers[n];
    const struct layer_memory kept = language_memory_layer(pass->memory, n);
    float *m = pass->memory->wide[0], *masked = pass->memory->wide[1];

    if (!pass_norm_backward(pass, &layer->inner_norm, pass->tokens, kept.end, dx, dx, GRADIENT_SET,
                            error))
        return false;
    const float *d_part = pass_dropout_backward(pass, n, PASS_FEED_FORWARD, dx, masked);
    pass_norm(pass, &layer->attention_norm, pass->tokens, kept.middle, m);
    pass_feed_forward_backward(pass, n, m, d_part, dx, GRADIENT_ADD);

    if (!pass_norm_backward(pass, &layer->attention_norm, pass->tokens, kept.middle, dx, dx,
                            GRADIENT_SET, error))
        return false;
    d_part = pass_dropout_backward(pass, n, PASS_ATTENTION, dx, masked);
    return pass_attention_backward(pass, n, kept.x, d_part, dx, GRADIENT_ADD, error);
}
