#include <math.h>
#include <stdlib.h>

#include "probe/look_pass.h"

static float *allocate(int64_t layers, int64_t heads, int64_t tokens, int64_t d)
{
    return calloc((size_t)(layers * heads * tokens), (size_t)d * sizeof(float));
}

/* One layer's: the shapes that it has are those of all. */
static bool start(const struct look_pass *pass, const struct attention_record *record,
                  struct look_vectors *vectors, struct attn_error *error)
{
    const int64_t d = record->q.shape[3];
    if (record->v.shape[3] != d)
        return attn_error_set(error, "queries have %lld numbers and values %lld: not of one size",
                              (long long)d, (long long)record->v.shape[3]);
    *vectors = (struct look_vectors){.layers = pass->layers,
                                     .heads = pass->heads,
                                     .key_heads = record->k.shape[1],
                                     .d = d,
                                     .tokens = (int64_t)pass->tokens,
                                     .scale = record->params->scale};
    if (isnan(vectors->scale))
        vectors->scale = 1.0f / sqrtf((float)d);
    vectors->queries = allocate(pass->layers, pass->heads, vectors->tokens, d);
    vectors->keys = allocate(pass->layers, vectors->key_heads, vectors->tokens, d);
    vectors->values = allocate(pass->layers, vectors->key_heads, vectors->tokens, d);
    return (vectors->queries && vectors->keys && vectors->values) || attn_error_memory(error);
}

static void copy(const struct look_pass *pass, const attn_tensor *tensor, float *numbers)
{
    const int64_t heads = tensor->shape[1], tokens = tensor->shape[2], d = tensor->shape[3];
    for (int64_t head = 0; head < heads; head++)
        look_copy_rows(tensor, head, 0, tokens,
                       numbers + (pass->layer * heads + head) * tokens * d);
}

bool look_vectors_observe(struct look_pass *pass, const struct attention_record *record,
                          struct attn_error *error)
{
    struct look_vectors *vectors = &pass->look->vectors;
    if (!vectors->queries && !start(pass, record, vectors, error))
        return false;
    copy(pass, &record->q, vectors->queries);
    copy(pass, &record->k, vectors->keys);
    copy(pass, &record->v, vectors->values);
    return true;
}

void look_vectors_release(struct look_vectors *vectors)
{
    free(vectors->queries);
    free(vectors->keys);
    free(vectors->values);
    *vectors = (struct look_vectors){0};
}
