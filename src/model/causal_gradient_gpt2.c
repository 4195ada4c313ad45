/* The inner half of a layer of GPT-2 and back: see causal_gpt2.c.
 *
 *     u = W₁·norm₂(x) + b₁     y = W₂·activation(u) + b₂
 *     du = activation′(u)∘(dy·W₂)     dnorm = du·W₁ */
#include "model/causal_gradient_parts.h"

static void inner(const struct causal_gradient *gradient, const struct causal_layer *layer)
{
    const struct causal_pass *pass = &gradient->pass;
    const struct weight_matrix *up = &layer->up.weight;
    const struct matrix_product product = {up, layer->up.bias, pass->up, up->out, MATRIX_SET};
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, pass->normed,
                    up->in, &product, 1);
}

static void activate(const struct causal_gradient *gradient)
{
    const struct causal_pass *pass = &gradient->pass;
    const struct causal_configuration *configuration = &pass->model->configuration;
    activation_apply(pass->compute, configuration->activation, pass->tokens,
                     configuration->settings.inner, pass->up, gradient->d_up);
}

static void inner_backward(const struct causal_gradient *gradient, const struct causal_layer *layer)
{
    const struct causal_pass *pass = &gradient->pass;
    const int64_t width = layer->up.weight.out;
    activation_backward(pass->compute, pass->model->configuration.activation, pass->tokens, width,
                        pass->up, gradient->d_up, gradient->d_up);
    causal_gradient_through(gradient, &layer->up.weight, gradient->d_up, width, GRADIENT_SET);
}

static bool norm_backward(const struct causal_gradient *gradient, const struct causal_norm *norm,
                          int64_t rows, const float *x, const float *dy, float *dx,
                          enum gradient_mode mode, struct attn_error *error)
{
    const struct layer_norm layer = causal_layer_norm(&gradient->pass, norm);
    const struct layer_norm_gradient none = {0};
    return layer_norm_backward(gradient->pass.compute, &layer, rows, x, dy, dx, mode, &none, error);
}

const struct causal_gradient_kind causal_gradient_gpt2 = {
    .inner = inner,
    .activate = activate,
    .inner_backward = inner_backward,
    .norm_backward = norm_backward,
};
