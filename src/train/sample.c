#include "train/sample.h"

#include <math.h>
#include <stdlib.h>

#include "train/random.h"

/* Whether logit a comes before logit b. NaN comes last. */
static bool is_before(const float *logits, int32_t a, int32_t b)
{
    if (logits[a] != logits[b])
        return logits[a] > logits[b] || isnan(logits[b]);
    return a < b;
}

/* Sorts the first `top` places by the logits that they name: each of the rest is let in where it
 * belongs, or not. */
static void choose_top(const float *logits, int64_t count, int64_t top, int32_t *places)
{
    int64_t chosen = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t place = chosen < top ? chosen++ : top;
        if (place == top && !is_before(logits, i, places[top - 1]))
            continue;
        if (place == top)
            place--;
        for (; place > 0 && is_before(logits, i, places[place - 1]); place--)
            places[place] = places[place - 1];
        places[place] = i;
    }
}

int32_t sample_draw(const float *logits, int64_t count, double temperature, int64_t top,
                    double chance, int32_t *places)
{
    if (top > count)
        top = count;
    choose_top(logits, count, top, places);
    double largest = (double)logits[places[0]], sum = 0.0;
    for (int64_t i = 0; i < top; i++)
        sum += exp(((double)logits[places[i]] - largest) / temperature);
    double left = chance * sum;
    for (int64_t i = 0; i < top; i++) {
        left -= exp(((double)logits[places[i]] - largest) / temperature);
        if (left < 0.0)
            return places[i];
    }
    return places[0];
}

bool sample_tokens(struct language_model *model, const struct compute *compute,
                   const struct sample_settings *settings, int64_t begun, int64_t count,
                   int32_t *ids, struct attn_error *error)
{
    int64_t vocabulary = language_model_get_settings(model)->vocabulary;
    int64_t limit = settings->limit < vocabulary ? settings->limit : vocabulary;
    float *logits = malloc((size_t)vocabulary * sizeof *logits);
    int32_t *places = malloc((size_t)vocabulary * sizeof *places);
    bool done = logits && places ? true : attn_error_memory(error);
    for (int64_t i = begun; done && i < count; i++) {
        uint32_t words[4];
        int64_t seen = i < settings->window ? i : settings->window;
        random_draw(settings->seed, RANDOM_SAMPLE, 0, i, words);
        done = language_model_next(model, compute, ids + i - seen, seen, logits, error);
        if (done)
            ids[i] = sample_draw(logits, limit, settings->temperature, settings->top,
                                 (double)words[0] / 4294967296.0, places);
    }
    free(places);
    free(logits);
    return done;
}
