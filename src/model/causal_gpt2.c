/* A layer of GPT-2: each half reads a norm of the sum that runs through all layers, and adds to it.
 *
 *     x = x + Wo·attention(norm₁(x))
 *     x = x + W₂·activation(W₁·norm₂(x))
 *
 * A. Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), 2.3. */
#include "model/causal_pass.h"

static void norm(const struct causal_pass *pass, const struct causal_norm *part, int64_t rows,
                 const float *x, float *y)
{
    const struct layer_norm layer = causal_layer_norm(pass, part);
    layer_norm_forward(pass->compute, &layer, rows, x, NULL, y);
}

static bool gpt2_layer_read(struct causal_pass *pass, int64_t n, struct attn_error *error)
{
    const struct causal_layer *layer = &pass->model->layers[n];
    const struct weight_matrix *up = &layer->up.weight;

    norm(pass, &layer->attention_norm, pass->tokens, pass->x, pass->normed);
    causal_project(pass, layer);
    if (!causal_attend(pass, n, error))
        return false;
    causal_add(pass, &layer->output, pass->blended);

    norm(pass, &layer->inner_norm, pass->tokens, pass->x, pass->normed);
    const struct matrix_product inner = {up, NULL, pass->up, up->out, MATRIX_SET};
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, pass->normed,
                    up->in, &inner, 1);
    activation_forward(pass->compute, pass->model->configuration.activation, pass->tokens, up->out,
                       layer->up.bias, pass->up);
    causal_add(pass, &layer->down, pass->up);
    return true;
}

const struct causal_kind causal_gpt2 = {gpt2_layer_read, norm};
