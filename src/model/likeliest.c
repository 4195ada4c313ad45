#include "model/likeliest.h"

#include <float.h>
#include <stdbool.h>

static bool is_finite(float logit)
{
    return logit >= -FLT_MAX && logit <= FLT_MAX;
}

static bool is_likelier(const struct candidate *a, const struct candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

/* Restores a heap whose root, the least likely, was exchanged. */
static void sink(struct candidate *heap, int64_t count)
{
    const struct candidate moved = heap[0];
    int64_t place = 0;
    for (int64_t child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && is_likelier(&heap[child], &heap[child + 1]))
            child++;
        if (!is_likelier(&moved, &heap[child]))
            break;
        heap[place] = heap[child];
    }
    heap[place] = moved;
}

static void rise(struct candidate *heap, int64_t place)
{
    const struct candidate moved = heap[place];
    for (int64_t parent; place > 0; place = parent) {
        parent = (place - 1) / 2;
        if (!is_likelier(&heap[parent], &moved))
            break;
        heap[place] = heap[parent];
    }
    heap[place] = moved;
}

int64_t likeliest_select(const float *logits, int64_t vocabulary, int64_t limit,
                         struct candidate *candidates)
{
    int64_t count = 0, i = 0;
    for (; i < vocabulary && count < limit; i++)
        if (is_finite(logits[i])) {
            candidates[count] = (struct candidate){.id = (int32_t)i, .logit = logits[i]};
            rise(candidates, count++);
        }
    for (; i < vocabulary; i++)
        if (logits[i] > candidates[0].logit && logits[i] <= FLT_MAX) {
            candidates[0] = (struct candidate){.id = (int32_t)i, .logit = logits[i]};
            sink(candidates, count);
        }
    for (int64_t left = count - 1; left > 0; left--) {
        const struct candidate least = candidates[0];
        candidates[0] = candidates[left];
        candidates[left] = least;
        sink(candidates, left);
    }
    return count;
}
