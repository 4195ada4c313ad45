#include "attention_call.h"

static attn_tensor packed_output(const struct attention_sizes *sizes, int64_t dim)
{
    return tensor_allocate(ATTN_F32, sizes->batch, sizes->heads, sizes->queries, dim, LAYOUT_PACKED,
                           GUARD_BEHIND);
}

void attention_call_begin(struct attention_call *call, const struct attention_sizes *sizes)
{
    attn_context_create(&call->context, NULL);
    attention_make(&call->problem, sizes, 1);
    call->o = packed_output(sizes, sizes->d_v);
    call->stats = packed_output(sizes, 2);
    call->weights = packed_output(sizes, sizes->keys);
    call->begin = NULL;
}

void attention_call_end(struct attention_call *call)
{
    attn_context_destroy(call->context);
}

attn_status attention_call_forward(struct attention_call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_forward(call->context, &problem->params, &problem->q, &problem->k, &problem->v,
                        &call->o, &call->stats);
}

attn_status attention_call_weights(struct attention_call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_weights(call->context, &problem->params, &problem->q, &problem->k, &call->stats,
                        call->begin, &call->weights);
}
