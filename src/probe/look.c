#include "probe/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { LEFT_OUT = -1 }; /* in place of a unit */

static bool check_heads(const struct text_model_settings *model,
                        const struct look_settings *settings, struct attn_error *error)
{
    const long long layers = model->layers, heads = model->heads;
    for (size_t n = 0; n < settings->head_count; n++) {
        const long long layer = settings->heads[n].layer, head = settings->heads[n].head;
        bool layer_there = layer == LOOK_MEAN || (layer >= 0 && layer < layers);
        bool head_there = head == LOOK_MEAN || (head >= 0 && head < heads && layer != LOOK_MEAN);
        if (layer_there && head_there)
            continue;
        if (head == LOOK_MEAN)
            return attn_error_set(
                error,
                "the model has %lld layers of %lld heads, counted from 0: there is no layer %lld",
                layers, heads, layer);
        if (layer == LOOK_MEAN)
            return attn_error_set(error, "head %lld of no layer: a head needs its layer", head);
        return attn_error_set(
            error,
            "the model has %lld layers of %lld heads, counted from 0: there is no L%lldH%lld",
            layers, heads, layer, head);
    }
    return true;
}

/* Which unit each token belongs to, and what each unit is. group has encoding->token_count places.
 */
static void form_units(const struct encoding *encoding, const struct look_settings *settings,
                       int32_t *group, struct look *look)
{
    look->units = 0;
    for (size_t t = 0; t < encoding->token_count; t++) {
        int32_t word = encoding->tokens[t].word;
        bool added = word == TOKEN_NO_WORD;
        if (added && !settings->special) {
            group[t] = LEFT_OUT;
            continue;
        }
        bool continues =
            settings->unit == LOOK_WORDS && !added && t > 0 && encoding->tokens[t - 1].word == word;
        if (!continues) {
            look->first_token[look->units] = t;
            look->word[look->units] = word;
            look->units++;
        }
        group[t] = (int32_t)look->units - 1;
    }
}

void look_merge(const float *weights, size_t tokens, const int32_t *group, size_t units,
                float *merged)
{
    for (size_t n = 0; n < units * units; n++)
        merged[n] = 0.0f;
    for (size_t query = 0; query < tokens; query++) {
        if (group[query] < 0)
            continue;
        float *row = merged + (size_t)group[query] * units;
        for (size_t key = 0; key < tokens; key++)
            if (group[key] >= 0)
                row[group[key]] += weights[query * tokens + key];
    }
    for (size_t unit = 0; unit < units; unit++) {
        size_t queries = 0;
        for (size_t t = 0; t < tokens; t++)
            queries += group[t] == (int32_t)unit;
        for (size_t key = 0; queries > 1 && key < units; key++)
            merged[unit * units + key] /= (float)queries;
    }
}

/* What the observer needs and fills. */
struct collector {
    const struct look_settings *settings;
    int64_t model_heads;
    int64_t model_layers;
    size_t tokens;
    const int32_t *group; /* [tokens] */
    float *weights;       /* [tokens][tokens]: one head */
    float *merged;        /* [units][units]: the same by unit */
    double *sums;         /* [head_count][units][units] where a mean is asked for, else NULL */
    struct look *look;
};

static bool wants(const struct look_head *wanted, int64_t layer, int64_t head)
{
    return (wanted->layer == LOOK_MEAN || wanted->layer == layer) &&
           (wanted->head == LOOK_MEAN || wanted->head == head);
}

/* Adds one head of one layer to each matrix that it is part of. */
static void collect(struct collector *collector, int64_t layer, int64_t head)
{
    const size_t numbers = collector->look->units * collector->look->units;
    for (size_t n = 0; n < collector->settings->head_count; n++) {
        const struct look_head *wanted = &collector->settings->heads[n];
        if (!wants(wanted, layer, head))
            continue;
        if (wanted->head != LOOK_MEAN) {
            memcpy(collector->look->weights + n * numbers, collector->merged,
                   numbers * sizeof *collector->merged);
            continue;
        }
        double *sums = collector->sums + n * numbers;
        for (size_t i = 0; i < numbers; i++)
            sums[i] += (double)collector->merged[i];
    }
}

/* After a layer's attention: one head at a time, only those that are asked for. */
static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    struct collector *collector = user;
    const int64_t tokens = (int64_t)collector->tokens;
    attn_tensor weights = attn_tensor_packed(collector->weights, ATTN_F32, 1, 1, tokens, tokens);

    for (int64_t head = 0; head < collector->model_heads; head++) {
        bool wanted = false;
        for (size_t n = 0; !wanted && n < collector->settings->head_count; n++)
            wanted = wants(&collector->settings->heads[n], layer, head);
        if (!wanted)
            continue;
        const int64_t begin[4] = {0, head, 0, 0};
        if (attn_weights(compute->attention, record->params, &record->q, &record->k, &record->stats,
                         begin, &weights) != ATTN_SUCCESS)
            return attn_error_set(error, "attention weights: %s", attn_message(compute->attention));
        look_merge(collector->weights, collector->tokens, collector->group, collector->look->units,
                   collector->merged);
        collect(collector, layer, head);
    }
    return true;
}

static void finish_means(const struct collector *collector)
{
    const size_t numbers = collector->look->units * collector->look->units;
    for (size_t n = 0; n < collector->settings->head_count; n++) {
        const struct look_head *wanted = &collector->settings->heads[n];
        if (wanted->head != LOOK_MEAN)
            continue;
        int64_t layers = wanted->layer == LOOK_MEAN ? collector->model_layers : 1;
        double count = (double)(layers * collector->model_heads);
        for (size_t i = n * numbers; i < (n + 1) * numbers; i++)
            collector->look->weights[i] = (float)(collector->sums[i] / count);
    }
}

static bool check_encoding(const struct text_model_settings *model, const struct encoding *encoding,
                           struct attn_error *error)
{
    if (encoding->token_count > (size_t)model->positions)
        return attn_error_set(error, "the text has %zu tokens, the model has %lld positions",
                              encoding->token_count, (long long)model->positions);
    for (size_t t = 0; t < encoding->token_count; t++)
        if (encoding->tokens[t].word != TOKEN_NO_WORD)
            return true;
    return attn_error_set(error, "the text has no word to look from");
}

/* All that one look needs for its time. Each array has at least one element. */
struct scratch {
    int32_t *group; /* [tokens] */
    float *weights; /* [tokens][tokens] */
    float *merged;  /* [units][units] */
    double *sums;   /* [head_count][units][units], NULL without a mean */
};

static void scratch_release(struct scratch *scratch)
{
    free(scratch->group);
    free(scratch->weights);
    free(scratch->merged);
    free(scratch->sums);
}

static bool any_mean(const struct look_settings *settings)
{
    for (size_t n = 0; n < settings->head_count; n++)
        if (settings->heads[n].head == LOOK_MEAN)
            return true;
    return false;
}

/* Forms the units, then allocates everything; calloc checks the last product of each size. */
static bool prepare(const struct encoding *encoding, const struct look_settings *settings,
                    struct scratch *scratch, struct look *look)
{
    const size_t tokens = encoding->token_count;
    scratch->group = calloc(tokens, sizeof *scratch->group);
    look->first_token = calloc(tokens, sizeof *look->first_token);
    look->word = calloc(tokens, sizeof *look->word);
    if (!scratch->group || !look->first_token || !look->word)
        return false;
    form_units(encoding, settings, scratch->group, look);

    size_t numbers, bytes;
    if (!attn_checked_size_multiply(look->units, look->units, &numbers) ||
        !attn_checked_size_multiply(numbers, sizeof *scratch->sums, &bytes))
        return false;
    scratch->weights = calloc(tokens, tokens * sizeof *scratch->weights);
    scratch->merged = calloc(numbers, sizeof *scratch->merged);
    look->weights = calloc(settings->head_count, numbers * sizeof *look->weights);
    if (any_mean(settings)) {
        scratch->sums = calloc(settings->head_count, bytes);
        if (!scratch->sums)
            return false;
    }
    return scratch->weights && scratch->merged && look->weights;
}

bool look_run(struct text_model *model, const struct compute *compute,
              const struct encoding *encoding, const struct look_settings *settings,
              struct look *look, struct attn_error *error)
{
    *look = (struct look){0};
    const struct text_model_settings *shape = text_model_get_settings(model);
    if (settings->head_count == 0)
        return attn_error_set(error, "no head to look at");
    if (!check_heads(shape, settings, error) || !check_encoding(shape, encoding, error))
        return false;

    struct scratch scratch = {0};
    bool done = prepare(encoding, settings, &scratch, look);
    if (!done)
        attn_error_memory(error);
    else {
        struct collector collector = {
            .settings = settings,
            .model_heads = shape->heads,
            .model_layers = shape->layers,
            .tokens = encoding->token_count,
            .group = scratch.group,
            .weights = scratch.weights,
            .merged = scratch.merged,
            .sums = scratch.sums,
            .look = look,
        };
        const struct model_observer observer = {observe, &collector};
        done = text_model_read(model, compute, encoding, &observer, error);
        if (done)
            finish_means(&collector);
    }
    scratch_release(&scratch);
    if (!done)
        look_release(look);
    return done;
}

void look_release(struct look *look)
{
    free(look->first_token);
    free(look->word);
    free(look->weights);
    *look = (struct look){0};
}
