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

/* [sequences, heads, length, d]: a part of `sequences` sequences of one length, from `first_token`
 * on. */
static attn_tensor view(const struct projections *projections, int part, int64_t first_token,
                        int64_t sequences, int64_t length)
{
    int64_t stride = token_stride(projections);
    return (attn_tensor){
        .data =
            projections->data + first_token * stride + part * projections->heads * projections->d,
        .type = ATTN_F32,
        .shape = {sequences, projections->heads, length, projections->d},
        .stride = {length * stride, projections->d, stride, 1},
    };
}

/* O of the same sequences in blended[tokens][heads][d]. */
static attn_tensor output_view(const struct projections *projections, float *blended,
                               int64_t first_token, int64_t sequences, int64_t length)
{
    int64_t stride = projections->heads * projections->d;
    return (attn_tensor){
        .data = blended + first_token * stride,
        .type = ATTN_F32,
        .shape = {sequences, projections->heads, length, projections->d},
        .stride = {length * stride, projections->d, stride, 1},
    };
}

/* How many sequences from `first` on have the length of the first one. */
static int64_t run_of_equal_lengths(const struct packed_batch *batch, int64_t first)
{
    int64_t end = first + 1;
    while (end < batch->sequences && batch->lengths[end] == batch->lengths[first])
        end++;
    return end - first;
}

/* blended = softmax(Q·Kᵀ/√d)·V of each head of each sequence; one call a run of equal lengths,
 * whose sequences are the batch axis. stats is scratch for 2 numbers a token and head. */
static bool attend(const struct compute *compute, const struct packed_batch *batch,
                   const struct projections *projections, float *blended, float *stats,
                   const struct attention_observer *observer, struct attn_error *error)
{
    attn_params params;
    attn_params_init(&params); /* every token sees every token; the scale is 1/√d */

    int64_t token = 0;
    for (int64_t first = 0; first < batch->sequences;) {
        int64_t sequences = run_of_equal_lengths(batch, first);
        int64_t length = batch->lengths[first];

        struct attention_record record = {
            .first_sequence = first,
            .params = &params,
            .q = view(projections, QUERY, token, sequences, length),
            .k = view(projections, KEY, token, sequences, length),
            .stats = attn_tensor_packed(stats, ATTN_F32, sequences, projections->heads, length, 2),
        };
        attn_tensor v = view(projections, VALUE, token, sequences, length);
        attn_tensor o = output_view(projections, blended, token, sequences, length);

        if (attn_forward(compute->attention, &params, &record.q, &record.k, &v, &o,
                         observer ? &record.stats : NULL) != ATTN_SUCCESS)
            return attn_error_set(error, "attention: %s", attn_message(compute->attention));
        if (observer && !observer->observe(observer->user, compute, &record, error))
            return false;

        first += sequences;
        token += sequences * length;
    }
    return true;
}

bool self_attention_forward(const struct compute *compute, const struct self_attention *layer,
                            const struct packed_batch *batch, const float *x, float *y,
                            float *workspace, const struct attention_observer *observer,
                            struct attn_error *error)
{
    const int64_t tokens = batch->tokens;
    const int64_t width = layer->query.in;
    const int64_t inner = layer->query.out; /* heads·d */

    struct projections projections = {workspace, layer->heads, inner / layer->heads};
    const int64_t stride = token_stride(&projections);
    float *blended = workspace + tokens * stride;
    float *stats = blended + tokens * inner;

    linear_forward(&layer->query, tokens, x, width, workspace + QUERY * inner, stride);
    linear_forward(&layer->key, tokens, x, width, workspace + KEY * inner, stride);
    linear_forward(&layer->value, tokens, x, width, workspace + VALUE * inner, stride);

    if (!attend(compute, batch, &projections, blended, stats, observer, error))
        return false;

    linear_accumulate(&layer->output, tokens, blended, inner, y, layer->output.out);
    return true;
}

int64_t self_attention_workspace(const struct self_attention *layer, int64_t tokens)
{
    const int64_t inner = layer->query.out;
    return tokens * (PARTS * inner + inner + 2 * layer->heads);
}
