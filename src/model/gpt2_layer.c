/* A layer of GPT-2: each half reads a norm of the sum that runs through all layers, and adds to it.
 *
 *     m = x + drop(attention(norm₁(x)))
 *     y = m + drop(W₂·activation(W₁·norm₂(m)))
 *
 * A. Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), 2.3. */
#include "model/gpt2_layer.h"

bool gpt2_layer(struct language_pass *pass, int64_t n, struct attn_error *error)
{
    const struct language_layer *layer = &pass->model->layers[n];
    const struct layer_memory kept = language_memory_layer(pass->memory, n);
    float *normed = pass->memory->wide[0], *part = pass->memory->wide[1];

    pass_norm(pass, &layer->attention_norm, pass->tokens, kept.x, normed);
    if (!pass_attention(pass, n, normed, part, error))
        return false;
    pass_dropout(pass, n, PASS_ATTENTION, part);
    pass_add(pass, kept.x, part, kept.middle);

    pass_norm(pass, &layer->inner_norm, pass->tokens, kept.middle, normed);
    pass_feed_forward(pass, n, normed, part);
    pass_dropout(pass, n, PASS_FEED_FORWARD, part);
    pass_add(pass, kept.middle, part, kept.next);
    return true;
}

/* The sum's gradient passes each half untouched, and what flows through the half is added to it. */
bool gpt2_layer_backward(struct language_pass *pass, int64_t n, float *dx, struct attn_error *error)
{
    const struct language_layer *layer = &pass->model->layers[n];
    const struct layer_memory kept = language_memory_layer(pass->memory, n);
    float *normed = pass->memory->wide[0], *d_normed = pass->memory->wide[1];
    float *masked = pass->memory->wide[2];

    const float *d_part = pass_dropout_backward(pass, n, PASS_FEED_FORWARD, dx, masked);
    pass_norm(pass, &layer->inner_norm, pass->tokens, kept.middle, normed);
    pass_feed_forward_backward(pass, n, normed, d_part, d_normed, GRADIENT_SET);
    if (!pass_norm_backward(pass, &layer->inner_norm, pass->tokens, kept.middle, d_normed, dx,
                            GRADIENT_ADD, error))
        return false;

    d_part = pass_dropout_backward(pass, n, PASS_ATTENTION, dx, masked);
    pass_norm(pass, &layer->attention_norm, pass->tokens, kept.x, normed);
    return pass_attention_backward(pass, n, normed, d_part, d_normed, GRADIENT_SET, error) &&
           pass_norm_backward(pass, &layer->attention_norm, pass->tokens, kept.x, d_normed, dx,
                              GRADIENT_ADD, error);
}
