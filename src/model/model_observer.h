/* Whoever looks into a model while it computes. */
#ifndef ATTN_MODEL_MODEL_OBSERVER_H
#define ATTN_MODEL_MODEL_OBSERVER_H

#include "nn/self_attention.h"

/* Sees each layer's attention as it happens: the record of self_attention.h, and the layer from 0.
 * Where `change` is set, it says before what is changed in the layer (NULL: nothing), which must
 * stay as it is until the layer has been observed. */
struct model_observer {
    bool (*observe)(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error);
    void *user;
    const struct attention_change *(*change)(void *user, int64_t layer); /* or NULL */
};

/* An observer bound to the layer that is computed, as self_attention_forward wants it. */
struct layer_observer {
    const struct model_observer *observer;
    int64_t layer;
};

/* user is a struct layer_observer. */
static inline bool layer_observer_observe(void *user, const struct compute *compute,
                                          const struct attention_record *record,
                                          struct attn_error *error)
{
    const struct layer_observer *bound = (const struct layer_observer *)user;
    return bound->observer->observe(bound->observer->user, bound->layer, compute, record, error);
}

/* What self_attention_forward is to be given. */
static inline struct attention_observer layer_observer_watch(struct layer_observer *bound)
{
    const struct model_observer *observer = bound->observer;
    return (struct attention_observer){
        layer_observer_observe, bound,
        observer && observer->change ? observer->change(observer->user, bound->layer) : NULL};
}

#endif
