#include "nn/self_attention_joined.h"

#include <stddef.h>

static int64_t row_stride(const struct linear *layer)
{
    if (layer->weight_stride)
        return layer->weight_stride;
    return layer->layout == LINEAR_OUT_IN ? layer->in : layer->out;
}

/* From the weights of a part to those of the next: some rows on, or some columns. */
static int64_t part_step(const struct linear *part)
{
    return part->layout == LINEAR_OUT_IN ? part->out * row_stride(part) : part->out;
}

static bool same_rows(const struct linear *a, const struct linear *b)
{
    return a->layout == b->layout && a->out == b->out && row_stride(a) == row_stride(b);
}

/* Whether b and c follow a at one and two steps, or none of them is there. */
static bool in_steps(const float *a, const float *b, const float *c, int64_t step)
{
    return a && b && c ? b == a + step && c == b + step : !a && !b && !c;
}

static bool gradients_follow(const struct self_attention_gradient *gradient,
                             const struct linear *query)
{
    const struct linear_gradient *q = &gradient->query, *k = &gradient->key, *v = &gradient->value;
    return q->mode == k->mode && k->mode == v->mode &&
           in_steps(q->weight, k->weight, v->weight, part_step(query)) &&
           in_steps(q->bias, k->bias, v->bias, query->out);
}

struct joined_projection self_attention_join(const struct self_attention *layer,
                                             const struct self_attention_gradient *gradient)
{
    const struct linear *q = &layer->query, *k = &layer->key, *v = &layer->value;
    struct joined_projection joined = {.layer = *q};
    joined.layer.out = SELF_ATTENTION_PARTS * q->out;
    joined.layer.weight_stride = row_stride(q);
    joined.forward = same_rows(q, k) && same_rows(k, v) &&
                     in_steps(q->weight, k->weight, v->weight, part_step(q)) &&
                     in_steps(q->bias, k->bias, v->bias, q->out);
    joined.backward = joined.forward && gradient && gradients_follow(gradient, q);
    return joined;
}
