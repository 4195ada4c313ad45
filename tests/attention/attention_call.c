#include "attention_call.h"

#include <string.h>

#include "harness/compare.h"
#include "harness/test.h"

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

attn_status attention_call_decode(struct attention_call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_decode(call->context, &problem->params, &problem->q, &problem->k, &problem->v,
                       &call->o, &call->stats);
}

void attention_call_check_message(const struct attention_call *call, attn_status status,
                                  attn_status expected, const char *names, const char *says)
{
    const char *message = attn_message(call->context);
    CHECK_EQUAL(status, expected);
    CHECK_CONTAINS(message, names);
    CHECK_CONTAINS(message, says);
    CHECK(strchr(message, '\n') == NULL);
}

void attention_check_fault(void (*begin)(struct attention_call *call),
                           const struct attention_fault *fault)
{
    struct attention_call call;
    begin(&call);
    const attn_tensor o = call.o, stats = call.stats, weights = call.weights;
    fault->change(&call);
    test_context("attn_forward");
    attention_call_check_message(&call, attention_call_forward(&call), fault->status, fault->names,
                                 fault->says);
    test_context("attn_decode");
    attention_call_check_message(&call, attention_call_decode(&call), fault->status, fault->names,
                                 fault->says);
    CHECK_UNWRITTEN((const float *)o.data, tensor_elements(&o));
    CHECK_UNWRITTEN((const float *)stats.data, tensor_elements(&stats));
    if (!fault->forward_only) {
        test_context("attn_weights");
        attention_call_check_message(&call, attention_call_weights(&call), fault->status,
                                     fault->names, fault->says);
        CHECK_UNWRITTEN((const float *)weights.data, tensor_elements(&weights));
    }
    attention_call_end(&call);
}
