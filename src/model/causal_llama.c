/* A layer of Llama: each half reads a norm of the sum that runs through all layers, and adds to it.
 *
 *     x = x + Wo·attention(rope(Wq·norm₁(x)), rope(Wk·norm₁(x)), Wv·norm₁(x))
 *     x = x + Wdown·(SiLU(Wgate·norm₂(x)) ∘ Wup·norm₂(x))
 *
 * H. Touvron et al., "LLaMA" (2023), 2.2; grouped heads: J. Ainslie et al., "GQA" (2023). */
#include "model/causal_pass.h"

static void norm(const struct causal_pass *pass, const struct causal_norm *part, int64_t rows,
                 const float *x, float *y)
{
    const struct rms_norm layer = causal_rms_norm(pass, part);
    rms_norm_forward(pass->compute, &layer, rows, x, y);
}

static bool llama_layer(struct causal_pass *pass, int64_t n, struct attn_error *error)
{
    const struct causal_layer *layer = &pass->model->layers[n];

    norm(pass, &layer->attention_norm, pass->tokens, pass->x, pass->normed);
    causal_project(pass, layer);
    causal_turn(pass, rope_turn, pass->projected);
    if (!causal_attend(pass, n, error))
        return false;
    causal_add(pass, &layer->output, pass->blended);

    norm(pass, &layer->inner_norm, pass->tokens, pass->x, pass->normed);
    causal_gate_and_up(pass, layer);
    swiglu_forward(pass->compute, pass->tokens, layer->gate.weight.out, pass->gate, pass->up,
                   pass->gate);
    causal_add(pass, &layer->down, pass->gate);
    return true;
}

const struct causal_kind causal_llama = {llama_layer, norm};
