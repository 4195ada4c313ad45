#include "train/sample.h"

#include <stdlib.h>

bool sample_tokens(struct language_model *model, const struct compute *compute,
                   const struct sample_settings *settings, int64_t begun, int64_t count,
                   int32_t *ids, struct attn_error *error)
{
    int64_t vocabulary = language_model_get_settings(model)->vocabulary;
    int64_t limit = settings->limit < vocabulary ? settings->limit : vocabulary;
    struct sampler *sampler;
    if (!sampler_create(&sampler, &settings->sampler, limit, error))
        return false;
    float *logits = malloc((size_t)vocabulary * sizeof *logits);
    bool done = logits || attn_error_memory(error);
    for (int64_t i = begun; done && i < count; i++) {
        struct drawn_token token;
        int64_t seen = i < settings->window ? i : settings->window;
        done = language_model_next(model, compute, ids + i - seen, seen, logits, error) &&
               sampler_draw(sampler, logits, ids, i, &token, error);
        if (done)
            ids[i] = token.id;
    }
    free(logits);
    sampler_destroy(sampler);
    return done;
}
