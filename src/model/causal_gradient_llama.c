/* The inner half of a layer of Llama and back: see causal_llama.c.
 *
 *     g = Wgate·norm₂(x)     u = Wup·norm₂(x)     y = Wdown·(SiLU(g)∘u)
 *     da = dy·Wdown     dg = da∘u∘SiLU′(g)     du = da∘SiLU(g)     dnorm = dg·Wgate + du·Wup */
#include "model/causal_gradient_parts.h"

static void inner(const struct causal_gradient *gradient, const struct causal_layer *layer)
{
    causal_gate_and_up(&gradient->pass, layer);
}

static void activate(const struct causal_gradient *gradient)
{
    const struct causal_pass *pass = &gradient->pass;
    swiglu_forward(pass->compute, pass->tokens, pass->model->configuration.settings.inner,
                   pass->gate, pass->up, gradient->d_up);
}

static void inner_backward(const struct causal_gradient *gradient, const struct causal_layer *layer)
{
    const struct causal_pass *pass = &gradient->pass;
    const int64_t width = layer->gate.weight.out;
    swiglu_backward(pass->compute, pass->tokens, width, pass->gate, pass->up, gradient->d_up,
                    gradient->d_gate, gradient->d_up);
    causal_gradient_through(gradient, &layer->gate.weight, gradient->d_gate, width, GRADIENT_SET);
    causal_gradient_through(gradient, &layer->up.weight, gradient->d_up, width, GRADIENT_ADD);
}

static bool norm_backward(const struct causal_gradient *gradient, const struct causal_norm *norm,
                          int64_t rows, const float *x, const float *dy, float *dx,
                          enum gradient_mode mode, struct attn_error *error)
{
    const struct rms_norm layer = causal_rms_norm(&gradient->pass, norm);
    const struct rms_norm_gradient none = {0};
    return rms_norm_backward(gradient->pass.compute, &layer, rows, x, dy, dx, mode, &none, error);
}

const struct causal_gradient_kind causal_gradient_llama = {
    .turns = true,
    .inner = inner,
    .activate = activate,
    .inner_backward = inner_backward,
    .norm_backward = norm_backward,
};
