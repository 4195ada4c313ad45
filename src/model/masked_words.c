#include "model/masked_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/checkpoint.h"
#include "model/bert_config.h"
#include "model/language_parts.h"
#include "model/likeliest.h"

struct masked_words {
    struct language_model *model;
};

bool masked_words_are_there(const char *directory, bool *there, struct attn_error *error)
{
    struct checkpoint *checkpoint;
    *there = false;
    if (!checkpoint_open(&checkpoint, directory, error))
        return false;
    for (size_t n = 0; !*there && n < checkpoint_count(checkpoint); n++)
        *there = strncmp(checkpoint_at(checkpoint, n)->name, BERT_HEAD, strlen(BERT_HEAD)) == 0;
    checkpoint_close(checkpoint);
    return true;
}

bool masked_words_open(struct masked_words **model, const char *directory, struct attn_error *error)
{
    *model = NULL;
    struct bert_config config;
    if (!bert_config_read(&config, directory, error))
        return false;
    struct masked_words *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    if (!language_model_open_with_head(&made->model, directory, error)) {
        free(made);
        return false;
    }
    *model = made;
    return true;
}

void masked_words_close(struct masked_words *model)
{
    if (!model)
        return;
    language_model_close(model->model);
    free(model);
}

int64_t masked_words_vocabulary(const struct masked_words *model)
{
    return language_model_get_settings(model->model)->vocabulary;
}

bool masked_words_logits(struct masked_words *model, const struct compute *compute,
                         const struct encoding *encoding, const int64_t *places, int64_t count,
                         float *logits, struct attn_error *error)
{
    const size_t tokens = encoding->token_count;
    int32_t *ids = calloc(tokens + 1, sizeof *ids);
    int32_t *types = calloc(tokens + 1, sizeof *types);
    const struct language_places sequence = {(int64_t)tokens, ids, types, count, places};
    for (size_t t = 0; ids && types && t < tokens; t++) {
        ids[t] = encoding->tokens[t].id;
        types[t] = encoding->tokens[t].type;
    }
    const bool done = ids && types
                          ? language_model_tell(model->model, compute, &sequence, logits, error)
                          : attn_error_memory(error);
    free(ids);
    free(types);
    return done;
}

bool masked_words_head(struct masked_words *model, const struct compute *compute,
                       const float *hidden, int64_t count, float *logits, struct attn_error *error)
{
    return language_model_tell_hidden(model->model, compute, hidden, count, logits, error);
}

/* Sums are in double, so that probabilities of a large vocabulary add up to 1. */
static void rank(const float *logits, int64_t vocabulary, struct candidate *candidates, int64_t top,
                 struct masked_word *words)
{
    likeliest_select(logits, vocabulary, top, candidates);
    const double largest = candidates[0].logit;
    double sum = 0;
    for (int64_t id = 0; id < vocabulary; id++)
        sum += exp(logits[id] - largest);
    for (int64_t n = 0; n < top; n++)
        words[n] = (struct masked_word){candidates[n].id, exp(candidates[n].logit - largest) / sum};
}

bool masked_words_tell(struct masked_words *model, const struct compute *compute,
                       const struct encoding *encoding, const int64_t *places, int64_t count,
                       int64_t top, struct masked_word *words, struct attn_error *error)
{
    const int64_t vocabulary = masked_words_vocabulary(model);
    if (top < 1 || top > vocabulary)
        return attn_error_set(error, "%lld words are asked for, but must be 1 to %lld",
                              (long long)top, (long long)vocabulary);
    int64_t numbers;
    float *logits = attn_checked_multiply(count, vocabulary, &numbers)
                        ? calloc((size_t)numbers + 1, sizeof *logits)
                        : NULL;
    struct candidate *candidates = calloc((size_t)top, sizeof *candidates);
    const bool done = logits && candidates ? masked_words_logits(model, compute, encoding, places,
                                                                 count, logits, error)
                                           : attn_error_memory(error);
    for (int64_t n = 0; done && n < count; n++)
        rank(logits + n * vocabulary, vocabulary, candidates, top, words + n * top);
    free(candidates);
    free(logits);
    return done;
}
