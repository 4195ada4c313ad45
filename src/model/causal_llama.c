/* A layer of Llama: each half reads a norm of the sum that runs through all layers, and adds to it.
 *
 *     x = x + Wo·attention(rope(Wq·norm₁(x)), rope(Wk·norm₁(x)), Wv·norm₁(x))
 *     x = x + Wdown·(SiLU(Wgate·norm₂(x)) ∘ Wup·norm₂(x))
 *
 * H. Touvron et al., "LLaMA" (2023), 2.2; grouped heads: J. Ainslie et al., "GQA" (2023). */
#include "model/causal_pass.h"
#include "nn/rms_norm.h"

static void norm(const struct causal_pass *pass, const struct causal_norm *part, int64_t rows,
                 const float *x, float *y)
{
    const struct causal_configuration *configuration = &pass->model->configuration;
    const struct rms_norm layer = {part->gain, configuration->settings.width,
                                   configuration->norm_epsilon};
    rms_norm_forward(pass->compute, &layer, rows, x, y);
}

/* Queries and keys lie side by side and turn alike. */
static void turn(struct causal_pass *pass)
{
    const struct causal_configuration *configuration = &pass->model->configuration;
    const struct causal_settings *settings = &configuration->settings;
    rope_turn(&configuration->rope, pass->cosines, pass->sines, pass->tokens,
              settings->heads + settings->key_heads, causal_projected_width(settings),
              pass->projected);
}

static bool llama_layer(struct causal_pass *pass, int64_t n, struct attn_error *error)
{
    const struct causal_layer *layer = &pass->model->layers[n];
    const int64_t width = layer->gate.weight.in, inner = layer->gate.weight.out;

    norm(pass, &layer->attention_norm, pass->tokens, pass->x, pass->normed);
    causal_project(pass, layer);
    turn(pass);
    if (!causal_attend(pass, n, error))
        return false;
    causal_add(pass, &layer->output, pass->blended);

    norm(pass, &layer->inner_norm, pass->tokens, pass->x, pass->normed);
    const struct matrix_product products[] = {
        {&layer->gate.weight, layer->gate.bias, pass->gate, inner, MATRIX_SET},
        {&layer->up.weight, layer->up.bias, pass->up, inner, MATRIX_SET},
    };
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, pass->normed,
                    width, products, 2);
    swiglu_forward(pass->compute, pass->tokens, inner, pass->gate, pass->up, pass->gate);
    causal_add(pass, &layer->down, pass->gate);
    return true;
}

const struct causal_kind causal_llama = {llama_layer, norm};
