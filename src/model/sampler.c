#include "model/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

enum {
    DEFAULT_REPEAT_LAST = 64,
    DEFAULT_TOP_K = 40,
    LANES = 16, /* of a search that the compiler makes vectors of */
    BINS = 512,
    BINS_A_UNIT = 16 /* of logits */
};

/* The last word of the counter: no other use of Philox (base/philox.h) has it. */
#define DRAW_PURPOSE UINT32_C(0x73616d70)

struct sampler {
    struct sampler_settings settings;
    int64_t vocabulary;
    int64_t top; /* candidates at most */
    uint64_t draws;
    struct candidate *candidates; /* [top] */
    float *penalized;             /* [vocabulary]; NULL without a penalty */
};

void sampler_settings_init(struct sampler_settings *settings)
{
    *settings = (struct sampler_settings){.repeat_penalty = 1.0,
                                          .repeat_last = DEFAULT_REPEAT_LAST,
                                          .top_k = DEFAULT_TOP_K,
                                          .top_p = 0.95,
                                          .min_p = 0.05,
                                          .temperature = 0.8,
                                          .log_probabilities = true};
}

struct number_range {
    const char *name;
    double value, least, most;
    const char *expected;
};

static bool check_number(const struct number_range *range, struct attn_error *error)
{
    if (isnan(range->value))
        return attn_error_set(error, "%s is not a number", range->name);
    if (!(range->value >= range->least && range->value <= range->most))
        return attn_error_set(error, "%s is %g, expected %s", range->name, range->value,
                              range->expected);
    return true;
}

static bool check_settings(const struct sampler_settings *settings, struct attn_error *error)
{
    const struct number_range ranges[] = {
        {"the temperature", settings->temperature, 0.0, DBL_MAX, "0 or more"},
        {"the repeat penalty", settings->repeat_penalty, DBL_MIN, DBL_MAX, "more than 0"},
        {"top-p", settings->top_p, 0.0, DBL_MAX, "0 to 1"},
        {"min-p", settings->min_p, 0.0, 1.0, "0 to 1"},
    };
    for (size_t n = 0; n < sizeof ranges / sizeof *ranges; n++)
        if (!check_number(&ranges[n], error))
            return false;
    if (settings->top_k < 0)
        return attn_error_set(error, "top-k is %lld, expected 0 (all) or more",
                              (long long)settings->top_k);
    if (settings->repeat_last < -1)
        return attn_error_set(
            error, "the repeat penalty's last tokens are %lld, expected -1 (all) or more",
            (long long)settings->repeat_last);
    return true;
}

static bool is_penalizing(const struct sampler_settings *settings)
{
    return settings->repeat_penalty != 1.0 && settings->repeat_last != 0;
}

bool sampler_create(struct sampler **sampler, const struct sampler_settings *settings,
                    int64_t vocabulary, struct attn_error *error)
{
    *sampler = NULL;
    if (!check_settings(settings, error))
        return false;
    if (vocabulary < 1 || vocabulary > INT32_MAX)
        return attn_error_set(error, "the vocabulary has %lld tokens, expected 1 to %d",
                              (long long)vocabulary, INT32_MAX);
    struct sampler *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    const bool cut = settings->top_k > 0 && settings->top_k < vocabulary;
    made->settings = *settings;
    made->vocabulary = vocabulary;
    made->top = cut ? settings->top_k : vocabulary;
    made->candidates = malloc((size_t)made->top * sizeof *made->candidates);
    bool done = made->candidates != NULL;
    if (is_penalizing(settings)) {
        made->penalized = malloc((size_t)vocabulary * sizeof *made->penalized);
        done = done && made->penalized;
    }
    if (!done) {
        sampler_destroy(made);
        return attn_error_memory(error);
    }
    *sampler = made;
    return true;
}

void sampler_destroy(struct sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->candidates);
    free(sampler->penalized);
    free(sampler);
}

/* In lanes, each with a maximum of its own. */
static bool find_largest(const float *logits, int64_t count, float *largest,
                         struct attn_error *error)
{
    float highest[LANES];
    int32_t refused[LANES] = {0};
    for (int lane = 0; lane < LANES; lane++)
        highest[lane] = -INFINITY;
    for (int64_t begin = 0; begin + LANES <= count; begin += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float logit = logits[begin + lane];
            highest[lane] = logit > highest[lane] ? logit : highest[lane];
            refused[lane] |= !(logit <= FLT_MAX);
        }
    for (int64_t i = count - count % LANES; i < count; i++) {
        highest[0] = logits[i] > highest[0] ? logits[i] : highest[0];
        refused[0] |= !(logits[i] <= FLT_MAX);
    }
    *largest = -INFINITY;
    for (int lane = 0; lane < LANES; lane++) {
        if (refused[lane])
            return attn_error_set(error, "a token's logit is not finite");
        *largest = highest[lane] > *largest ? highest[lane] : *largest;
    }
    return *largest >= -FLT_MAX || attn_error_set(error, "no token has a finite logit");
}

static float penalize(float logit, double penalty)
{
    if (!isfinite(logit))
        return logit;
    double changed = logit < 0.0f ? (double)logit * penalty : (double)logit / penalty;
    return (float)fmin(fmax(changed, (double)-FLT_MAX), (double)FLT_MAX);
}

/* The logits after the penalty: a token's from what it was, so that it counts once. */
static const float *apply_penalty(struct sampler *sampler, const float *logits, const int32_t *seen,
                                  int64_t seen_count)
{
    const int64_t last = sampler->settings.repeat_last;
    if (!sampler->penalized)
        return logits;
    memcpy(sampler->penalized, logits, (size_t)sampler->vocabulary * sizeof *logits);
    for (int64_t i = last < 0 || last > seen_count ? 0 : seen_count - last; i < seen_count; i++)
        if (seen[i] >= 0 && seen[i] < sampler->vocabulary)
            sampler->penalized[seen[i]] =
                penalize(logits[seen[i]], sampler->settings.repeat_penalty);
    return sampler->penalized;
}

/* Σ exp(logit − largest), each term rounded to float: probabilities that add up to a limit exactly
 * do so here too. */
static double sum_of_exponentials(const float *logits, int64_t count, float largest)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)expf(logits[i] - largest);
    return sum;
}

/* How many of `count` sorted candidates top-p and min-p keep, whose exponentials and those behind
 * them have the sum `total`. */
static int64_t cut(const struct sampler_settings *settings, const struct candidate *candidates,
                   int64_t count, double total)
{
    const float largest = candidates[0].logit;
    double reached = 0.0;
    for (int64_t n = 0; n < count; n++) {
        const double weight = (double)expf(candidates[n].logit - largest);
        if (n > 0 && (weight < settings->min_p ||
                      (settings->top_p < 1.0 && reached >= settings->top_p * total)))
            return n;
        reached += weight;
    }
    return count;
}

/* All tokens, counted by how far they are below the likeliest. */
struct histogram {
    double weights[BINS];
    int64_t counts[BINS];
    double total;
};

static void count_all(struct histogram *histogram, const float *logits, int64_t vocabulary,
                      float largest)
{
    *histogram = (struct histogram){0};
    for (int64_t id = 0; id < vocabulary; id++) {
        const float bin = fminf((largest - logits[id]) * BINS_A_UNIT, BINS - 1);
        if (logits[id] < -FLT_MAX)
            continue;
        histogram->weights[(int)bin] += (double)expf(logits[id] - largest);
        histogram->counts[(int)bin]++;
    }
    for (int bin = 0; bin < BINS; bin++)
        histogram->total += histogram->weights[bin];
}

/* Of all tokens only so many are sorted: top-p and min-p keep no more. */
static int64_t count_needed(const struct sampler_settings *settings,
                            const struct histogram *histogram)
{
    /* Sums in another order round otherwise, and so does expf, which cut() goes by. */
    const double slack = 1.0 + 1e-6;
    double reached = 0.0;
    int64_t needed = 0;
    for (int bin = 0; bin < BINS; bin++) {
        const double likeliest = exp(-(double)bin / BINS_A_UNIT) * slack;
        if (bin > 0 && likeliest < settings->min_p)
            break;
        needed += histogram->counts[bin];
        reached += histogram->weights[bin];
        if (settings->top_p < 1.0 && reached >= settings->top_p * histogram->total * slack)
            break;
    }
    return needed;
}

static int64_t choose_of_all(struct sampler *sampler, const float *logits, float largest)
{
    struct histogram histogram;
    count_all(&histogram, logits, sampler->vocabulary, largest);
    int64_t count =
        likeliest_select(logits, sampler->vocabulary, count_needed(&sampler->settings, &histogram),
                         sampler->candidates);
    return cut(&sampler->settings, sampler->candidates, count, histogram.total);
}

static int64_t choose_of_top(struct sampler *sampler, const float *logits)
{
    struct candidate *candidates = sampler->candidates;
    int64_t count = likeliest_select(logits, sampler->vocabulary, sampler->top, candidates);
    double total = 0.0;
    for (int64_t n = 0; n < count; n++)
        total += (double)expf(candidates[n].logit - candidates[0].logit);
    return cut(&sampler->settings, candidates, count, total);
}

static void set_probabilities(struct candidate *candidates, int64_t count, double temperature)
{
    double sum = 0.0;
    for (int64_t n = 0; n < count; n++) {
        double distance = (double)candidates[n].logit - (double)candidates[0].logit;
        candidates[n].probability = n == 0 ? 1.0 : exp(distance / temperature);
        sum += candidates[n].probability;
    }
    for (int64_t n = 0; n < count; n++)
        candidates[n].probability /= sum;
}

static int32_t find_first(const float *logits, float value)
{
    int32_t id = 0;
    while (logits[id] != value)
        id++;
    return id;
}

/* Logits after the penalty, and the largest of them. */
struct weighed {
    const float *logits;
    float largest;
};

static bool weigh(struct sampler *sampler, const float *logits, const int32_t *seen,
                  int64_t seen_count, struct weighed *weighed, struct attn_error *error)
{
    weighed->logits = apply_penalty(sampler, logits, seen, seen_count);
    return find_largest(weighed->logits, sampler->vocabulary, &weighed->largest, error);
}

/* How many candidates there are. */
static int64_t choose(struct sampler *sampler, const struct weighed *weighed)
{
    if (sampler->settings.temperature == 0.0) {
        const int32_t id = find_first(weighed->logits, weighed->largest);
        sampler->candidates[0] = (struct candidate){id, weighed->largest, 1.0};
        return 1;
    }
    int64_t count = sampler->top == sampler->vocabulary
                        ? choose_of_all(sampler, weighed->logits, weighed->largest)
                        : choose_of_top(sampler, weighed->logits);
    set_probabilities(sampler->candidates, count, sampler->settings.temperature);
    return count;
}

bool sampler_candidates(struct sampler *sampler, const float *logits, const int32_t *seen,
                        int64_t seen_count, const struct candidate **candidates, int64_t *count,
                        struct attn_error *error)
{
    struct weighed weighed;
    if (!weigh(sampler, logits, seen, seen_count, &weighed, error))
        return false;
    *count = choose(sampler, &weighed);
    *candidates = sampler->candidates;
    return true;
}

/* Uniform in 0..1, 1 excluded, of 53 random bits. */
static double draw_chance(struct sampler *sampler)
{
    const uint64_t n = sampler->draws++;
    const uint32_t counter[PHILOX_WORDS] = {(uint32_t)n, (uint32_t)(n >> 32), 0, DRAW_PURPOSE};
    uint32_t words[PHILOX_WORDS];
    attn_philox(sampler->settings.seed, counter, words);
    const uint64_t bits = ((uint64_t)words[0] << 32 | words[1]) >> 11;
    return (double)bits * 0x1p-53;
}

static int32_t draw_candidate(const struct candidate *candidates, int64_t count, double chance)
{
    for (int64_t n = 0; n < count; n++) {
        chance -= candidates[n].probability;
        if (chance < 0.0)
            return candidates[n].id;
    }
    return candidates[0].id; /* rounding left a rest */
}

/* Where nothing is cut off, nothing need be sorted. */
static bool is_of_all(const struct sampler *sampler)
{
    const struct sampler_settings *settings = &sampler->settings;
    return sampler->top == sampler->vocabulary && settings->top_p >= 1.0 &&
           settings->min_p == 0.0 && settings->temperature > 0.0;
}

static double heated_weight(const struct weighed *weighed, int64_t id, double temperature)
{
    const double distance = (double)weighed->logits[id] - (double)weighed->largest;
    return (double)expf((float)fmax(distance / temperature, (double)-FLT_MAX));
}

static int32_t draw_of_all(const struct sampler *sampler, const struct weighed *weighed,
                           double chance)
{
    const double temperature = sampler->settings.temperature;
    double sum = 0.0;
    for (int64_t id = 0; id < sampler->vocabulary; id++)
        sum += heated_weight(weighed, id, temperature);
    double left = chance * sum;
    for (int32_t id = 0; id < sampler->vocabulary; id++) {
        left -= heated_weight(weighed, id, temperature);
        if (left < 0.0)
            return id;
    }
    return find_first(weighed->logits, weighed->largest); /* rounding left a rest */
}

/* ln softmax(logits)[id] */
static bool tell_probability(const struct sampler *sampler, const float *logits,
                             struct drawn_token *token, struct attn_error *error)
{
    float largest;
    token->log_probability = NAN;
    if (!sampler->settings.log_probabilities)
        return true;
    if (!find_largest(logits, sampler->vocabulary, &largest, error))
        return false;
    token->log_probability = (double)logits[token->id] - (double)largest -
                             log(sum_of_exponentials(logits, sampler->vocabulary, largest));
    return true;
}

bool sampler_draw(struct sampler *sampler, const float *logits, const int32_t *seen,
                  int64_t seen_count, struct drawn_token *token, struct attn_error *error)
{
    struct weighed weighed;
    if (!weigh(sampler, logits, seen, seen_count, &weighed, error))
        return false;
    const double chance = draw_chance(sampler);
    token->id = is_of_all(sampler)
                    ? draw_of_all(sampler, &weighed, chance)
                    : draw_candidate(sampler->candidates, choose(sampler, &weighed), chance);
    return tell_probability(sampler, logits, token, error);
}
