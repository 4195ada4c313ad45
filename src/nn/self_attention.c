/* Where everything starts from: X and the four matrices Wq, Wk, Wv, Wo.
 *
 *     Q = X·Wqᵀ + bq     K = X·Wkᵀ + bk     V = X·Wvᵀ + bv          X  [tokens][width]
 *     head h:  Sₕ = Qₕ·Kₕᵀ/√d     Pₕ = softmax(Sₕ)     Oₕ = Pₕ·Vₕ    Qₕ [length][d]
 *     Y = concat(O₀, O₁, …)·Woᵀ + bo                                Y  [tokens][width]
 *
 * A query is what a token asks for, a key what a token can be found by, a value what it then gives.
 * S scores each query against each key; without 1/√d the scores' variance would grow with d, and
 * the softmax, which makes of a row of scores weights that sum to 1, would saturate.
 *
 * And back, from dY = ∂L/∂Y, each line the derivative of one above:
 *
 *     dO = dY·Wo     dWo = dYᵀ·O     dbo = Σ dY over tokens
 *     head h:  dVₕ = Pₕᵀ·dOₕ     dPₕ = dOₕ·Vₕᵀ     dSₕ = Pₕ∘(dPₕ − rowsum(dOₕ∘Oₕ))
 *              dQₕ = dSₕ·Kₕ/√d     dKₕ = dSₕᵀ·Qₕ/√d
 *     dX = dQ·Wq + dK·Wk + dV·Wv     dWq = dQᵀ·X     dbq = Σ dQ     and so for k and v
 *
 * A. Vaswani et al., "Attention Is All You Need" (2017), section 3.2.2; weights are written as
 * PyTorch keeps them, [out][in], hence the transposes. S, P and their gradients, [length][length],
 * are never in memory: attn_forward and attn_backward work on them tile by tile. */
#include "nn/self_attention.h"

#include <stddef.h>
#include <string.h>

#include "nn/self_attention_joined.h"

/* Q, K and V of a token lie side by side, each as its heads side by side:
 *
 *     token t:  | q: head 0 | head 1 | … | k: head 0 | … | v: head 0 | … |     3·heads·d numbers
 *
 * so that the projections write into one matrix and a head is a view of it, never a copy. */
enum { QUERY, KEY, VALUE, PARTS = SELF_ATTENTION_PARTS };

/* What the forward pass makes on its way; with `stats` all of it that the backward pass needs. */
struct activations {
    float *projected; /* [tokens][PARTS][heads][d] */
    float *blended;   /* [tokens][heads][d]: O */
    float *stats;     /* [heads][tokens][2]: of each row of P, see attn_forward */
};

static int64_t heads_width(const struct self_attention *layer)
{
    return layer->query.out; /* heads·d */
}

int64_t self_attention_workspace(const struct self_attention *layer, int64_t tokens)
{
    return tokens * ((PARTS + 1) * heads_width(layer) + 2 * layer->heads);
}

static struct activations activations_in(float *memory, const struct self_attention *layer,
                                         int64_t tokens)
{
    float *blended = memory + tokens * PARTS * heads_width(layer);
    return (struct activations){memory, blended, blended + tokens * heads_width(layer)};
}

/* Heads side by side in rows of `stride` numbers, as [1, heads, tokens, d]: all sequences, one
 * behind the other. */
static attn_tensor heads_view(const struct self_attention *layer, int64_t tokens, float *data,
                              int64_t stride)
{
    const int64_t d = heads_width(layer) / layer->heads;
    return (attn_tensor){
        .data = data,
        .type = ATTN_F32,
        .shape = {1, layer->heads, tokens, d},
        .stride = {tokens * stride, d, stride, 1},
    };
}

static attn_tensor part_view(const struct self_attention *layer, int64_t tokens, float *projected,
                             int part)
{
    return heads_view(layer, tokens, projected + part * heads_width(layer),
                      PARTS * heads_width(layer));
}

/* What attention computes with and on. */
struct attention_call {
    attn_params params;
    attn_tensor q, k, v, o, stats;
};

static struct attention_call make_call(const struct self_attention *layer,
                                       const struct packed_batch *batch,
                                       const struct attention_dropout *dropout,
                                       const struct activations *activations)
{
    const int64_t tokens = packed_batch_tokens(batch);
    struct attention_call call = {
        .q = part_view(layer, tokens, activations->projected, QUERY),
        .k = part_view(layer, tokens, activations->projected, KEY),
        .v = part_view(layer, tokens, activations->projected, VALUE),
        .o = heads_view(layer, tokens, activations->blended, heads_width(layer)),
        .stats = attn_tensor_packed(activations->stats, ATTN_F32, 1, layer->heads, tokens, 2),
    };
    attn_params_init(&call.params); /* scale 1/√d; every token of a sequence sees every one */
    call.params.sequences = batch->sequences;
    call.params.query_starts = call.params.key_starts = batch->starts;
    call.params.causal = layer->sight == SELF_ATTENTION_CAUSAL;
    if (dropout) {
        call.params.dropout = dropout->rate;
        call.params.dropout_seed = dropout->seed;
        call.params.dropout_batch = dropout->first_sequence;
    }
    return call;
}

/* Q, K and V from X. */
static void project(const struct self_attention *layer, int64_t tokens, const float *x,
                    float *projected)
{
    const struct linear *const parts[PARTS] = {&layer->query, &layer->key, &layer->value};
    const int64_t width = layer->query.in, stride = PARTS * heads_width(layer);
    const struct joined_projection joined = self_attention_join(layer, NULL);
    if (joined.forward)
        linear_forward(&joined.layer, tokens, x, width, projected, stride);
    else
        for (int n = 0; n < PARTS; n++)
            linear_forward(parts[n], tokens, x, width, projected + n * heads_width(layer), stride);
}

/* From dQ, dK and dV what the three weights and biases get, and their sum for X. */
static void project_backward(const struct self_attention *layer, int64_t tokens, const float *x,
                             const float *d_projected, float *dx, enum gradient_mode dx_mode,
                             const struct self_attention_gradient *gradient)
{
    const struct linear *const parts[PARTS] = {&layer->query, &layer->key, &layer->value};
    const struct linear_gradient *const gradients[PARTS] = {&gradient->query, &gradient->key,
                                                            &gradient->value};
    const int64_t width = layer->query.in, stride = PARTS * heads_width(layer);
    const struct joined_projection joined = self_attention_join(layer, gradient);
    if (joined.backward)
        linear_backward(&joined.layer, tokens, x, width, d_projected, stride, dx, width, dx_mode,
                        &gradient->query);
    else
        for (int n = 0; n < PARTS; n++)
            linear_backward(parts[n], tokens, x, width, d_projected + n * heads_width(layer),
                            stride, dx, width, n == QUERY ? dx_mode : GRADIENT_ADD, gradients[n]);
}

void attention_change_blended(const struct attention_change *change, int64_t tokens, int64_t heads,
                              int64_t d, float *blended)
{
    if (!change || !change->heads_off)
        return;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t head = 0; head < heads; head++)
            if (change->heads_off[head])
                memset(blended + (t * heads + head) * d, 0, (size_t)d * sizeof *blended);
}

/* attention_output.project, of a struct self_attention. */
static void project_blended(const void *user, const struct compute *compute, int64_t rows,
                            const float *blended, float *y)
{
    (void)compute;
    const struct self_attention *layer = user;
    linear_product(&layer->output, rows, blended, heads_width(layer), y, layer->output.out);
}

bool self_attention_forward(const struct compute *compute, const struct self_attention *layer,
                            const struct packed_batch *batch, const float *x, float *y,
                            float *workspace, const struct attention_observer *observer,
                            struct attn_error *error)
{
    const int64_t tokens = packed_batch_tokens(batch);
    const struct activations activations = activations_in(workspace, layer, tokens);
    struct attention_call call = make_call(layer, batch, NULL, &activations);
    if (observer && observer->change) {
        call.params.change_scores = observer->change->change_scores;
        call.params.callback_user = observer->change->user;
    }

    project(layer, tokens, x, activations.projected);
    const double began = compute_attention_begin(compute);
    const attn_status status = attn_forward(compute->attention, &call.params, &call.q, &call.k,
                                            &call.v, &call.o, observer ? &call.stats : NULL);
    if (!compute_attention_end(compute, began, status, error))
        return false;
    if (observer) {
        const struct attention_record record = {
            .params = &call.params,
            .q = call.q,
            .k = call.k,
            .v = call.v,
            .stats = call.stats,
            .output = {layer->output.out, project_blended, layer},
        };
        if (!observer->observe(observer->user, compute, &record, error))
            return false;
        attention_change_blended(observer->change, tokens, layer->heads,
                                 heads_width(layer) / layer->heads, activations.blended);
    }
    linear_accumulate(&layer->output, tokens, activations.blended, heads_width(layer), y,
                      layer->output.out);
    return true;
}

bool self_attention_learn(const struct compute *compute, const struct self_attention *layer,
                          const struct packed_batch *batch, const struct attention_dropout *dropout,
                          const float *x, float *y, float *saved, struct attn_error *error)
{
    const int64_t tokens = packed_batch_tokens(batch);
    const struct activations activations = activations_in(saved, layer, tokens);
    const struct attention_call call = make_call(layer, batch, dropout, &activations);

    project(layer, tokens, x, activations.projected);
    const double began = compute_attention_begin(compute);
    const attn_status status = attn_forward(compute->attention, &call.params, &call.q, &call.k,
                                            &call.v, &call.o, &call.stats);
    if (!compute_attention_end(compute, began, status, error))
        return false;
    linear_forward(&layer->output, tokens, activations.blended, heads_width(layer), y,
                   layer->output.out);
    return true;
}

/* dO, and dQ, dK and dV lying as Q, K and V do. */
int64_t self_attention_backward_workspace(const struct self_attention *layer, int64_t tokens)
{
    return tokens * (PARTS + 1) * heads_width(layer);
}

bool self_attention_backward(const struct compute *compute, const struct self_attention *layer,
                             const struct packed_batch *batch,
                             const struct attention_dropout *dropout, const float *x,
                             const float *saved, const float *dy, float *dx,
                             enum gradient_mode dx_mode,
                             const struct self_attention_gradient *gradient, float *workspace,
                             struct attn_error *error)
{
    const int64_t tokens = packed_batch_tokens(batch);
    /* attn_tensor has no const; what is saved is only read. */
    const struct activations activations = activations_in((float *)saved, layer, tokens);
    const struct attention_call call = make_call(layer, batch, dropout, &activations);
    float *d_projected = workspace;
    float *d_blended = d_projected + tokens * PARTS * heads_width(layer);

    linear_backward(&layer->output, tokens, activations.blended, heads_width(layer), dy,
                    layer->output.out, d_blended, heads_width(layer), GRADIENT_SET,
                    &gradient->output);

    const attn_tensor d_o = heads_view(layer, tokens, d_blended, heads_width(layer));
    const attn_tensor d_q = part_view(layer, tokens, d_projected, QUERY);
    const attn_tensor d_k = part_view(layer, tokens, d_projected, KEY);
    const attn_tensor d_v = part_view(layer, tokens, d_projected, VALUE);
    attn_gradients wanted;
    attn_gradients_init(&wanted);
    wanted.q = &d_q;
    wanted.k = &d_k;
    wanted.v = &d_v;
    const double began = compute_attention_begin(compute);
    const attn_status status = attn_backward(compute->attention, &call.params, &call.q, &call.k,
                                             &call.v, &call.o, &call.stats, &d_o, &wanted);
    if (!compute_attention_end(compute, began, status, error))
        return false;

    project_backward(layer, tokens, x, d_projected, dx, dx_mode, gradient);
    return true;
}
