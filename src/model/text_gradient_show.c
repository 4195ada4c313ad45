#include "model/text_gradient_show.h"

#include "model/model_check.h"

bool text_gradient_show(const struct projected_attention *attention, int64_t layer,
                        const struct gradient_observer *observer, struct attn_error *error)
{
    const struct projected_attention_call call = projected_attention_call_of(attention);
    const struct attention_record record = {
        .params = &call.params,
        .q = call.q,
        .k = call.k,
        .v = call.v,
        .stats = call.stats,
    };
    const int64_t numbers = attention->tokens * attention->heads * attention->d;
    return model_check_finite(attention->d_blended, numbers, error) &&
           observer->observe(observer->user, layer, attention->compute, &record, &call.d_o, error);
}
