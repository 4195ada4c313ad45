#include "model/text_gradient_attention.h"

#include "model/model_check.h"

void text_gradient_attention_lay_out(struct text_gradient_attention *attention,
                                     struct attn_scratch *memory)
{
    const int64_t tokens = attention->tokens, blended = attention->heads * attention->d;
    const int64_t projected = text_gradient_projected(attention);
    attention->projected = attn_scratch_floats(memory, tokens, projected);
    attention->blended = attn_scratch_floats(memory, tokens, blended);
    attention->stats = attn_scratch_floats(memory, tokens, 2 * attention->heads);
    attention->d_projected = attn_scratch_floats(memory, tokens, projected);
    attention->d_blended = attn_scratch_floats(memory, tokens, blended);
}

/* `heads` heads side by side in rows of `row` numbers. */
static attn_tensor heads_view(const struct text_gradient_attention *attention, float *data,
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

static struct projected_views projected_views(const struct text_gradient_attention *attention,
                                              float *projected)
{
    const int64_t row = text_gradient_projected(attention), key_heads = attention->key_heads;
    float *keys = projected + attention->heads * attention->d;
    return (struct projected_views){
        .q = heads_view(attention, projected, attention->heads, row),
        .k = heads_view(attention, keys, key_heads, row),
        .v = heads_view(attention, keys + key_heads * attention->d, key_heads, row),
    };
}

/* All arguments of the calls below that both have. */
struct attention_call {
    attn_params params;
    struct projected_views in;
    attn_tensor o, stats;
};

static attn_tensor blended_view(const struct text_gradient_attention *attention, float *blended)
{
    return heads_view(attention, blended, attention->heads, attention->heads * attention->d);
}

static struct attention_call make_call(const struct text_gradient_attention *attention)
{
    struct attention_call call = {
        .in = projected_views(attention, attention->projected),
        .o = blended_view(attention, attention->blended),
        .stats = attn_tensor_packed(attention->stats, ATTN_F32, 1, attention->heads,
                                    attention->tokens, 2),
    };
    attn_params_init(&call.params); /* scale 1/√d */
    call.params.causal = attention->sight == SELF_ATTENTION_CAUSAL;
    return call;
}

static bool end(const struct text_gradient_attention *attention, attn_status status,
                struct attn_error *error)
{
    return status == ATTN_SUCCESS ||
           attn_error_set(error, "attention: %s", attn_message(attention->compute->attention));
}

bool text_gradient_attention_forward(const struct text_gradient_attention *attention,
                                     struct attn_error *error)
{
    const struct attention_call call = make_call(attention);
    return end(attention,
               attn_forward(attention->compute->attention, &call.params, &call.in.q, &call.in.k,
                            &call.in.v, &call.o, &call.stats),
               error);
}

bool text_gradient_attention_show(const struct text_gradient_attention *attention, int64_t layer,
                                  const struct gradient_observer *observer,
                                  struct attn_error *error)
{
    const struct attention_call call = make_call(attention);
    const attn_tensor d_o = blended_view(attention, attention->d_blended);
    const struct attention_record record = {
        .params = &call.params,
        .q = call.in.q,
        .k = call.in.k,
        .v = call.in.v,
        .stats = call.stats,
    };
    const int64_t numbers = attention->tokens * attention->heads * attention->d;
    return model_check_finite(attention->d_blended, numbers, error) &&
           observer->observe(observer->user, layer, attention->compute, &record, &d_o, error);
}

bool text_gradient_attention_backward(const struct text_gradient_attention *attention,
                                      struct attn_error *error)
{
    const struct attention_call call = make_call(attention);
    const struct projected_views out = projected_views(attention, attention->d_projected);
    const attn_tensor d_o = blended_view(attention, attention->d_blended);
    attn_gradients wanted;
    attn_gradients_init(&wanted);
    wanted.q = &out.q;
    wanted.k = &out.k;
    wanted.v = &out.v;
    return end(attention,
               attn_backward(attention->compute->attention, &call.params, &call.in.q, &call.in.k,
                             &call.in.v, &call.o, &call.stats, &d_o, &wanted),
               error);
}
