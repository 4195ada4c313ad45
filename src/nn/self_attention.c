/* Where everything starts from: X and the four matrices Wq, Wk, Wv, Wo.
 *
 *     Q = X·Wqᵀ + bq     K = X·Wkᵀ + bk     V = X·Wvᵀ + bv          X  [tokens][width]
 *     head h:  Oₕ = softmax(Qₕ·Kₕᵀ / √d)·Vₕ                         Qₕ [length][d]
 *     Y += concat(O₀, O₁, …)·Woᵀ                                    Y  [tokens][width]
 *
 * A. Vaswani et al., "Attention Is All You Need" (2017), section 3.2.2; weights lie as PyTorch
 * keeps them, [out][in], hence the transposes. */
#include "nn/self_attention.h"

#include <stddef.h>

/* Q, K and V of a token lie side by side, each as its heads side by side:
 *
 *     token t:  | q: head 0 | head 1 | … | k: head 0 | … | v: head 0 | … |     3·heads·d numbers
 *
 * so that the three products write into one matrix and a head is a view of it, never a copy. */
enum { QUERY, KEY, VALUE, PARTS };

struct projections {
    float *data; /* [tokens][PARTS][heads][d] */
    int64_t heads, d;
};

static int64_t token_stride(const struct projections *projections)
{
    return PARTS * projections->heads * projections->d;
}

/* [1, heads, tokens, d]: a part of all sequences, one behind the other. */
static attn_tensor view(const struct projections *projections, int part, int64_t tokens)
{
    int64_t stride = token_stride(projections);
    return (attn_tensor){
        .data = projections->data + part * projections->heads * projections->d,
        .type = ATTN_F32,
        .shape = {1, projections->heads, tokens, projections->d},
        .stride = {tokens * stride, projections->d, stride, 1},
    };
}

/* O in blended[tokens][heads][d]. */
static attn_tensor output_view(const struct projections *projections, float *blended,
                               int64_t tokens)
{
    int64_t stride = projections->heads * projections->d;
    return (attn_tensor){
        .data = blended,
        .type = ATTN_F32,
        .shape = {1, projections->heads, tokens, projections->d},
        .stride = {tokens * stride, projections->d, stride, 1},
    };
}

/* blended = softmax(Q·Kᵀ/√d)·V of each head of each sequence. stats is scratch for 2 numbers a
 * token and head. */
static bool attend(const struct compute *compute, const struct packed_batch *batch,
                   const struct projections *projections, float *blended, float *stats,
                   const struct attention_observer *observer, struct attn_error *error)
{
    attn_params params;
    attn_params_init(&params); /* every token of a sequence sees every one; the scale is 1/√d */
    params.sequences = batch->sequences;
    params.query_starts = params.key_starts = batch->starts;

    const int64_t tokens = packed_batch_tokens(batch);
    struct attention_record record = {
        .params = &params,
        .q = view(projections, QUERY, tokens),
        .k = view(projections, KEY, tokens),
        .stats = attn_tensor_packed(stats, ATTN_F32, 1, projections->heads, tokens, 2),
    };
    attn_tensor v = view(projections, VALUE, tokens);
    attn_tensor o = output_view(projections, blended, tokens);
    if (attn_forward(compute->attention, &params, &record.q, &record.k, &v, &o,
                     observer ? &record.stats : NULL) != ATTN_SUCCESS)
        return attn_error_set(error, "attention: %s", attn_message(compute->attention));
    return !observer || observer->observe(observer->user, compute, &record, error);
}

bool self_attention_forward(const struct compute *compute, const struct self_attention *layer,
                            const struct packed_batch *batch, const float *x, float *y,
                            float *workspace, const struct attention_observer *observer,
                            struct attn_error *error)
{
    const int64_t tokens = packed_batch_tokens(batch);
    const int64_t width = layer->query.in;
    const int64_t heads_width = layer->query.out; /* heads·d */

    struct projections projections = {workspace, layer->heads, heads_width / layer->heads};
    const int64_t stride = token_stride(&projections);
    float *blended = workspace + tokens * stride;
    float *stats = blended + tokens * heads_width;

    linear_forward(&layer->query, tokens, x, width, workspace + QUERY * heads_width, stride);
    linear_forward(&layer->key, tokens, x, width, workspace + KEY * heads_width, stride);
    linear_forward(&layer->value, tokens, x, width, workspace + VALUE * heads_width, stride);

    if (!attend(compute, batch, &projections, blended, stats, observer, error))
        return false;

    linear_accumulate(&layer->output, tokens, blended, heads_width, y, layer->output.out);
    return true;
}

int64_t self_attention_workspace(const struct self_attention *layer, int64_t tokens)
{
    const int64_t heads_width = layer->query.out;
    return tokens * (PARTS * heads_width + heads_width + 2 * layer->heads);
}
