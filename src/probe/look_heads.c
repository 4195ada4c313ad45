#include "probe/look_heads.h"

#include <stdio.h>

static bool is_there(const struct look_head *head, const struct text_model_settings *model)
{
    const bool all_heads = head->head == LOOK_MEAN;
    if (head->layer == LOOK_MEAN)
        return all_heads;
    return head->layer >= 0 && head->layer < model->layers &&
           (all_heads || (head->head >= 0 && head->head < model->heads));
}

bool look_heads_check(const struct look_head *heads, size_t count,
                      const struct text_model_settings *model, struct attn_error *error)
{
    for (size_t n = 0; n < count; n++) {
        const long long layer = heads[n].layer, head = heads[n].head;
        char name[64];
        if (is_there(&heads[n], model))
            continue;
        if (layer == LOOK_MEAN)
            return attn_error_set(error, "head %lld of no layer: a head needs its layer", head);
        if (head == LOOK_MEAN)
            snprintf(name, sizeof name, "layer %lld", layer);
        else
            snprintf(name, sizeof name, "L%lldH%lld", layer, head);
        return attn_error_set(
            error, "the model has %lld layers of %lld heads, counted from 0: there is no %s",
            (long long)model->layers, (long long)model->heads, name);
    }
    return true;
}
