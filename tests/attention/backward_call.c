#include "backward_call.h"

#include "harness/compare.h"
#include "harness/test.h"

const struct attention_sizes backward_call_sizes = {BATCH, HEADS, KEY_HEADS, QUERIES,
                                                    KEYS,  D_QK,  D_V};

attn_tensor backward_call_packed(int64_t batch, int64_t heads, int64_t length, int64_t dim)
{
    return tensor_allocate(ATTN_F32, batch, heads, length, dim, LAYOUT_PACKED, GUARD_BEHIND);
}

attn_tensor backward_call_unwritten_like(const attn_tensor *tensor)
{
    const int64_t *shape = tensor->shape;
    return backward_call_packed(shape[0], shape[1], shape[2], shape[3]);
}

void backward_call_begin(struct backward_call *call, attn_context *context,
                         const struct attention_sizes *sizes)
{
    call->context = context;
    attention_make(&call->problem, sizes, 1);
    static const int64_t bias_shape[4] = {1, HEADS, QUERIES, KEYS};
    if (sizes == &backward_call_sizes)
        attention_add_bias(&call->problem, bias_shape, 2);
    for (int h = 0; h < HEADS; h++)
        call->sinks[h] = (float)h;
    call->problem.params.sinks = call->sinks;
    call->o = backward_call_packed(sizes->batch, sizes->heads, sizes->queries, sizes->d_v);
    call->stats = backward_call_packed(sizes->batch, sizes->heads, sizes->queries, 2);
    call->d_o = backward_call_packed(sizes->batch, sizes->heads, sizes->queries, sizes->d_v);
    tensor_fill(&call->d_o, 1);
    call->d_q = backward_call_unwritten_like(&call->problem.q);
    call->d_k = backward_call_unwritten_like(&call->problem.k);
    call->d_v = backward_call_unwritten_like(&call->problem.v);
    call->d_sinks = backward_call_packed(1, sizes->heads, 1, 1);
    attn_gradients_init(&call->gradients);
    call->gradients.q = &call->d_q;
    call->gradients.k = &call->d_k;
    call->gradients.v = &call->d_v;
    call->gradients.sinks = &call->d_sinks;
    if (sizes == &backward_call_sizes) {
        call->d_bias = backward_call_unwritten_like(&call->problem.bias);
        call->gradients.bias = &call->d_bias;
    }
    CHECK_EQUAL(attn_forward(context, &call->problem.params, &call->problem.q, &call->problem.k,
                             &call->problem.v, &call->o, &call->stats),
                ATTN_SUCCESS);
}

attn_status backward_call_run(struct backward_call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_backward(call->context, &problem->params, &problem->q, &problem->k, &problem->v,
                         &call->o, &call->stats, &call->d_o, &call->gradients);
}

void backward_call_check_unwritten(const struct backward_call *call)
{
    const attn_tensor *const outputs[] = {&call->d_q, &call->d_k, &call->d_v, &call->d_sinks};
    for (size_t n = 0; n < COUNT(outputs); n++)
        CHECK_UNWRITTEN((const float *)outputs[n]->data, tensor_elements(outputs[n]));
}
