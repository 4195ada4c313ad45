#include "probe/what_if.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"

/* What one reading of the text tells. */
struct told {
    float *hidden; /* [tokens][width], BERT */
    float *logits; /* [places][vocabulary]: of the next word, or of the masks */
};

/* The two readings, and what makes words of them. */
struct comparison {
    struct told before, after;
    size_t tokens, width, vocabulary, places;
    struct what_if_word *words; /* [vocabulary]: of one place */
};

static bool see_nothing(void *user, int64_t layer, const struct compute *compute,
                        const struct attention_record *record, struct attn_error *error)
{
    (void)user, (void)layer, (void)compute, (void)record, (void)error;
    return true;
}

static const struct attention_change *change_nothing(void *user, int64_t layer)
{
    (void)user, (void)layer;
    return NULL;
}

/* [rows][columns], at least one number. */
static float *make_numbers(size_t rows, size_t columns)
{
    size_t numbers;
    return attn_checked_size_multiply(rows, columns, &numbers)
               ? calloc(numbers > 0 ? numbers : 1, sizeof(float))
               : NULL;
}

static bool comparison_make(struct comparison *comparison, bool has_hidden)
{
    struct told *const readings[] = {&comparison->before, &comparison->after};
    bool made = true;
    for (int n = 0; n < 2; n++) {
        readings[n]->logits = make_numbers(comparison->places, comparison->vocabulary);
        readings[n]->hidden =
            has_hidden ? make_numbers(comparison->tokens, comparison->width) : NULL;
        made = made && readings[n]->logits && (readings[n]->hidden || !has_hidden);
    }
    comparison->words = calloc(comparison->vocabulary, sizeof *comparison->words);
    return made && comparison->words;
}

static void comparison_release(struct comparison *comparison)
{
    free(comparison->before.hidden);
    free(comparison->before.logits);
    free(comparison->after.hidden);
    free(comparison->after.logits);
    free(comparison->words);
}

/* Both readings go the same way, with an observer, so that only the change makes a difference. */
static bool read_text(struct text_model *model, const struct what_if_masks *masks,
                      const struct compute *compute, const struct encoding *encoding,
                      struct what_if_change *change, struct told *told, struct attn_error *error)
{
    const struct model_observer observer = {see_nothing, change,
                                            change ? what_if_change_of : change_nothing};
    const struct text_model_settings *settings = text_model_get_settings(model);
    const bool is_bert = settings->kind == MODEL_BERT;
    const struct text_results results = {told->hidden, is_bert ? NULL : told->logits};
    if (!text_model_read(model, compute, encoding, &observer, &results, error))
        return false;
    for (size_t n = 0; is_bert && masks && n < masks->count; n++)
        if (!masked_words_head(masks->model, compute,
                               told->hidden + masks->places[n] * settings->width, 1,
                               told->logits + (int64_t)n * settings->vocabulary, error))
            return false;
    return true;
}

/* ln Σ exp over logits. */
static double log_sum(const float *logits, size_t count)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t id = 1; id < count; id++)
        largest = fmax(largest, (double)logits[id]);
    for (size_t id = 0; id < count; id++)
        sum += exp((double)logits[id] - largest);
    return largest + log(sum);
}

static double larger(const struct what_if_word *word)
{
    return word->before > word->after ? word->before : word->after;
}

static int compare_words(const void *a, const void *b)
{
    const struct what_if_word *one = a, *other = b;
    const double difference = larger(other) - larger(one);
    if (difference != 0)
        return difference > 0 ? 1 : -1;
    return (one->id > other->id) - (one->id < other->id);
}

static bool compare_place(const struct comparison *comparison, size_t index, size_t top,
                          struct what_if_place *place)
{
    const size_t vocabulary = comparison->vocabulary;
    const float *before = comparison->before.logits + index * vocabulary;
    const float *after = comparison->after.logits + index * vocabulary;
    const double sum_before = log_sum(before, vocabulary), sum_after = log_sum(after, vocabulary);
    double divergence = 0;
    for (size_t id = 0; id < vocabulary; id++) {
        const double log_before = (double)before[id] - sum_before;
        const double log_after = (double)after[id] - sum_after;
        comparison->words[id] = (struct what_if_word){(int32_t)id, exp(log_before), exp(log_after)};
        divergence += exp(log_before) * (log_before - log_after);
    }
    place->divergence = divergence > 0 ? divergence : 0; /* it is never below but by rounding */
    qsort(comparison->words, vocabulary, sizeof *comparison->words, compare_words);
    place->word_count = top < vocabulary ? top : vocabulary;
    place->words = calloc(place->word_count + 1, sizeof *place->words);
    for (size_t n = 0; place->words && n < place->word_count; n++)
        place->words[n] = comparison->words[n];
    return place->words != NULL;
}

/* 1 − cos as half the squared distance of the vectors made of length 1: small ones keep their
 * digits, and equal vectors have 0. A vector of zeros is as far as can be from any other. */
static double distance(const double *a, const double *b, size_t width)
{
    double a_squares = 0, b_squares = 0, sum = 0;
    for (size_t c = 0; c < width; c++) {
        a_squares += a[c] * a[c];
        b_squares += b[c] * b[c];
    }
    if (a_squares == 0 || b_squares == 0)
        return a_squares == b_squares ? 0 : 1;
    for (size_t c = 0; c < width; c++) {
        const double step = a[c] / sqrt(a_squares) - b[c] / sqrt(b_squares);
        sum += step * step;
    }
    return sum / 2;
}

/* mean[width] = the mean of x[rows][width]. */
static void mean_of(const float *x, size_t rows, size_t width, double *mean)
{
    for (size_t c = 0; c < width; c++) {
        mean[c] = 0;
        for (size_t r = 0; r < rows; r++)
            mean[c] += (double)x[r * width + c];
        mean[c] /= (double)rows;
    }
}

static bool compare_hidden(const struct comparison *comparison, struct what_if_effects *effects)
{
    const size_t width = comparison->width;
    const float *before = comparison->before.hidden, *after = comparison->after.hidden;
    effects->token_distances = calloc(comparison->tokens, sizeof *effects->token_distances);
    double *a = calloc(2 * width, sizeof *a), *b = a ? a + width : NULL;
    const bool made = effects->token_distances && a;
    for (size_t t = 0; made && t < comparison->tokens; t++) {
        mean_of(before + t * width, 1, width, a);
        mean_of(after + t * width, 1, width, b);
        effects->token_distances[t] = distance(a, b, width);
    }
    if (made) {
        mean_of(before, comparison->tokens, width, a);
        mean_of(after, comparison->tokens, width, b);
        effects->embedding_distance = distance(a, b, width);
        effects->has_embedding = true;
    }
    free(a);
    return made;
}

static bool compare(const struct comparison *comparison, const struct what_if_masks *masks,
                    size_t top, struct what_if_effects *effects)
{
    effects->places = calloc(comparison->places + 1, sizeof *effects->places);
    effects->place_count = effects->places ? comparison->places : 0;
    bool done = effects->places != NULL;
    for (size_t n = 0; done && n < comparison->places; n++) {
        effects->places[n].token = masks ? masks->places[n] : WHAT_IF_NEXT;
        done = compare_place(comparison, n, top, &effects->places[n]);
    }
    return done && (!comparison->before.hidden || compare_hidden(comparison, effects));
}

bool what_if_run(struct text_model *model, const struct what_if_masks *masks,
                 const struct compute *compute, const struct encoding *encoding,
                 const struct what_if *what_if, size_t top, struct what_if_effects *effects,
                 struct attn_error *error)
{
    *effects = (struct what_if_effects){0};
    const struct text_model_settings *settings = text_model_get_settings(model);
    const bool is_bert = settings->kind == MODEL_BERT;
    const struct what_if_masks *asked = is_bert ? masks : NULL;
    struct what_if_change *change;
    if (!what_if_change_create(&change, what_if, settings, encoding, error))
        return false;
    struct comparison comparison = {
        .tokens = encoding->token_count,
        .width = (size_t)settings->width,
        .vocabulary = (size_t)settings->vocabulary,
        .places = asked ? asked->count : !is_bert,
    };
    bool done = comparison_make(&comparison, is_bert) || attn_error_memory(error);
    done = done && read_text(model, asked, compute, encoding, NULL, &comparison.before, error) &&
           read_text(model, asked, compute, encoding, change, &comparison.after, error);
    if (done && !compare(&comparison, asked, top, effects))
        done = attn_error_memory(error);
    if (!done)
        what_if_effects_release(effects);
    comparison_release(&comparison);
    what_if_change_destroy(change);
    return done;
}

void what_if_effects_release(struct what_if_effects *effects)
{
    for (size_t n = 0; n < effects->place_count; n++)
        free(effects->places[n].words);
    free(effects->places);
    free(effects->token_distances);
    *effects = (struct what_if_effects){0};
}
