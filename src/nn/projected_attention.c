#include "nn/projected_attention.h"

void projected_attention_lay_out(struct projected_attention *attention, struct attn_scratch *memory)
{
    const int64_t tokens = attention->tokens, blended = attention->heads * attention->d;
    const int64_t projected = projected_attention_width(attention);
    attention->projected = attn_scratch_floats(memory, tokens, projected);
    attention->blended = attn_scratch_floats(memory, tokens, blended);
    attention->stats = attn_scratch_floats(memory, tokens, 2 * attention->heads);
    attention->d_projected = attn_scratch_floats(memory, tokens, projected);
    attention->d_blended = attn_scratch_floats(memory, tokens, blended);
}

/* `heads` heads side by side in rows of `row` numbers. */
static attn_tensor heads_view(const struct projected_attention *attention, float *data,
                              int64_t heads, int64_t row)
{
    const int64_t tokens = attention->tokens, d = attention->d;
    return (attn_tensor){
        .data = data,
        .type = ATTN_F32,
        .shape = {1, heads, tokens, d},
        .stride = {tokens * row, d, row, 1},
    };
}

/* What lies in `projected`, or their gradients. */
struct projected_views {
    attn_tensor q, k, v;
};

static struct projected_views projected_views(const struct projected_attention *attention,
                                              float *projected)
{
    const int64_t row = projected_attention_width(attention), key_heads = attention->key_heads;
    float *keys = projected + attention->heads * attention->d;
    return (struct projected_views){
        .q = heads_view(attention, projected, attention->heads, row),
        .k = heads_view(attention, keys, key_heads, row),
        .v = heads_view(attention, keys + key_heads * attention->d, key_heads, row),
    };
}

static attn_tensor blended_view(const struct projected_attention *attention, float *blended)
{
    return heads_view(attention, blended, attention->heads, attention->heads * attention->d);
}

struct projected_attention_call
projected_attention_call_of(const struct projected_attention *attention)
{
    const struct projected_views in = projected_views(attention, attention->projected);
    struct projected_attention_call call = {
        .q = in.q,
        .k = in.k,
        .v = in.v,
        .o = blended_view(attention, attention->blended),
        .stats = attn_tensor_packed(attention->stats, ATTN_F32, 1, attention->heads,
                                    attention->tokens, 2),
        .d_o = blended_view(attention, attention->d_blended),
    };
    attn_params_init(&call.params); /* scale 1/√d */
    call.params.causal = attention->sight == SELF_ATTENTION_CAUSAL;
    return call;
}

bool projected_attention_forward(const struct projected_attention *attention,
                                 struct attn_error *error)
{
    const struct compute *compute = attention->compute;
    const struct projected_attention_call call = projected_attention_call_of(attention);
    const double began = compute_attention_begin(compute);
    const attn_status status = attn_forward(compute->attention, &call.params, &call.q, &call.k,
                                            &call.v, &call.o, &call.stats);
    return compute_attention_end(compute, began, status, error);
}

bool projected_attention_backward(const struct projected_attention *attention,
                                  struct attn_error *error)
{
    const struct compute *compute = attention->compute;
    const struct projected_attention_call call = projected_attention_call_of(attention);
    const struct projected_views out = projected_views(attention, attention->d_projected);
    attn_gradients wanted;
    attn_gradients_init(&wanted);
    wanted.q = &out.q;
    wanted.k = &out.k;
    wanted.v = &out.v;
    const double began = compute_attention_begin(compute);
    const attn_status status = attn_backward(compute->attention, &call.params, &call.q, &call.k,
                                             &call.v, &call.o, &call.stats, &call.d_o, &wanted);
    return compute_attention_end(compute, began, status, error);
}
