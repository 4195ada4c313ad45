/* Samplers: the handed cases, what is refused, and the statistics of draws. */
#include "model/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"

/* Nothing is cut off, at temperature 1. */
static const struct sampler_settings plain = {
    .repeat_penalty = 1.0, .top_p = 1.0, .temperature = 1.0, .log_probabilities = true};

static struct sampler *create(const struct sampler_settings *settings, int64_t vocabulary)
{
    struct sampler *sampler;
    struct attn_error error;
    if (!sampler_create(&sampler, settings, vocabulary, &error))
        fail_msg("%s", error.message);
    return sampler;
}

/* The candidates of a new sampler, newly allocated; *count of them. */
static struct candidate *list(const struct sampler_settings *settings, const float *logits,
                              int64_t vocabulary, const int32_t *seen, int64_t seen_count,
                              int64_t *count)
{
    struct attn_error error;
    struct sampler *sampler = create(settings, vocabulary);
    const struct candidate *candidates;
    if (!sampler_candidates(sampler, logits, seen, seen_count, &candidates, count, &error))
        fail_msg("%s", error.message);
    struct candidate *copy = malloc((size_t)*count * sizeof *copy);
    memcpy(copy, candidates, (size_t)*count * sizeof *copy);
    sampler_destroy(sampler);
    return copy;
}

static struct drawn_token draw(struct sampler *sampler, const float *logits)
{
    struct drawn_token token;
    struct attn_error error;
    if (!sampler_draw(sampler, logits, NULL, 0, &token, &error))
        fail_msg("%s", error.message);
    return token;
}

static double number(const json_t *value)
{
    return json_is_string(value) ? strtod(json_string_value(value), NULL)
                                 : json_number_value(value);
}

/* input.logits, or ln of input.probs. */
static float *read_logits(const json_t *input, int64_t *count)
{
    const json_t *logits = json_object_get(input, "logits");
    const json_t *list = logits ? logits : json_object_get(input, "probs");
    *count = (int64_t)json_array_size(list);
    float *numbers = malloc((size_t)*count * sizeof *numbers);
    for (int64_t i = 0; i < *count; i++) {
        double value = number(json_array_get(list, (size_t)i));
        numbers[i] = (float)(logits ? value : log(value));
    }
    return numbers;
}

static void check_kept(const struct sampler_settings *settings, const float *logits,
                       int64_t vocabulary, const json_t *kept)
{
    int64_t count;
    struct candidate *candidates = list(settings, logits, vocabulary, NULL, 0, &count);
    assert_int_equal(count, json_array_size(kept));
    for (size_t k = 0; k < json_array_size(kept); k++) {
        bool found = false;
        for (int64_t n = 0; n < count; n++)
            found |= candidates[n].id == json_integer_value(json_array_get(kept, k));
        assert_true(found);
    }
    for (int64_t n = 1; n < count; n++)
        assert_true(candidates[n - 1].logit >= candidates[n].logit);
    free(candidates);
}

static void check_probabilities(const struct sampler_settings *settings, const float *logits,
                                int64_t vocabulary, const float *expected)
{
    int64_t count;
    struct candidate *candidates = list(settings, logits, vocabulary, NULL, 0, &count);
    assert_int_equal(count, vocabulary);
    for (int64_t n = 0; n < count; n++)
        assert_true(fabs(candidates[n].probability - (double)expected[candidates[n].id]) <= 1e-6);
    free(candidates);
}

static void check_penalty(struct sampler_settings settings, const json_t *input,
                          const float *logits, int64_t vocabulary, const float *expected)
{
    const json_t *list_of_seen = json_object_get(input, "seen");
    int32_t seen[8];
    const size_t seen_count = json_array_size(list_of_seen);
    assert_true(seen_count <= 8);
    for (size_t i = 0; i < seen_count; i++)
        seen[i] = (int32_t)json_integer_value(json_array_get(list_of_seen, i));
    settings.repeat_penalty = number(json_object_get(input, "penalty"));
    settings.repeat_last = 64;
    int64_t count;
    struct candidate *candidates =
        list(&settings, logits, vocabulary, seen, (int64_t)seen_count, &count);
    assert_int_equal(count, vocabulary);
    for (int64_t n = 0; n < count; n++)
        assert_true(fabs((double)candidates[n].logit - (double)expected[candidates[n].id]) <= 1e-6);
    free(candidates);
}

static void check_draws(struct sampler_settings settings, const json_t *input, const float *logits,
                        int64_t vocabulary, const json_t *expected)
{
    const char *refused = json_string_value(json_object_get(expected, "refused"));
    const json_t *seeds = json_object_get(input, "seeds");
    struct attn_error error;
    struct sampler *sampler;
    struct drawn_token token;
    if (refused) {
        bool made = sampler_create(&sampler, &settings, vocabulary, &error);
        assert_false(made && sampler_draw(sampler, logits, NULL, 0, &token, &error));
        assert_message(&error, refused);
        sampler_destroy(sampler);
    }
    for (size_t n = 0; n < json_array_size(seeds); n++) {
        settings.seed = (uint64_t)json_integer_value(json_array_get(seeds, n));
        sampler = create(&settings, vocabulary);
        assert_int_equal(draw(sampler, logits).id,
                         json_integer_value(json_object_get(expected, "index")));
        sampler_destroy(sampler);
    }
}

static void test_handed_cases(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/sampling.json");
    const json_t *cases = case_field(file, "cases", NULL);
    size_t ran = 0;
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *one = json_array_get(cases, n);
        const char *op = json_string_value(case_field(one, "op", NULL));
        const json_t *input = case_field(one, "input", NULL);
        const json_t *expected = case_field(one, "expected", NULL);
        if (strcmp(op, "stream") == 0 || strcmp(op, "end_ids") == 0)
            continue; /* tests/text/utf8_stream_test.c, model_source_test.c */
        struct sampler_settings settings = plain;
        int64_t count;
        float *logits = read_logits(input, &count), *numbers = NULL;
        settings.top_k = json_integer_value(json_object_get(input, "top_k"));
        if (json_object_get(input, "top_p"))
            settings.top_p = number(json_object_get(input, "top_p"));
        if (json_object_get(input, "temperature"))
            settings.temperature = number(json_object_get(input, "temperature"));
        if (strcmp(op, "sample") == 0)
            check_draws(settings, input, logits, count, expected);
        else if (strcmp(op, "top_k") == 0 || strcmp(op, "top_p") == 0)
            check_kept(&settings, logits, count, json_object_get(expected, "kept"));
        else if (strcmp(op, "probs") == 0)
            check_probabilities(&settings, logits, count,
                                numbers = case_numbers(json_object_get(expected, "probs"), NULL));
        else if (strcmp(op, "repeat_penalty") == 0)
            check_penalty(settings, input, logits, count,
                          numbers = case_numbers(json_object_get(expected, "logits"), NULL));
        else
            fail_msg("op %s is not known", op);
        free(numbers);
        free(logits);
        ran++;
    }
    assert_int_equal(ran, 14);
    json_decref(file);
}

/* Of 1000 different logits, unsorted. */
enum { MANY = 1000 };
static void fill(float logits[MANY])
{
    for (int i = 0; i < MANY; i++)
        logits[i] = (float)((i * 389) % MANY) * 0.01f;
}

/* The number of tokens that are kept, by sorting all of them. */
static int64_t count_kept(const struct sampler_settings *settings, const float *sorted)
{
    const int64_t top = settings->top_k > 0 && settings->top_k < MANY ? settings->top_k : MANY;
    double total = 0.0, reached = 0.0;
    int64_t kept = 0;
    for (int64_t n = 0; n < top; n++)
        total += exp((double)sorted[n] - (double)sorted[0]);
    for (; kept < top; kept++) {
        const double weight = exp((double)sorted[kept] - (double)sorted[0]);
        if (kept > 0 && ((settings->top_p < 1.0 && reached >= settings->top_p * total) ||
                         weight < settings->min_p))
            break;
        reached += weight;
    }
    return kept;
}

static void test_filters_keep_what_sorting_all_keeps(void **state)
{
    (void)state;
    float logits[MANY], sorted[MANY];
    fill(logits);
    for (int i = 0; i < MANY; i++)
        sorted[MANY - 1 - (i * 389) % MANY] = logits[i];
    const int64_t tops[] = {0, 1, 7, 255, 300, 999, 5000};
    const double top_ps[] = {1.0, 0.999, 0.95, 0.5, 0.0};
    const double min_ps[] = {0.0, 1e-4, 0.05, 0.5, 1.0};
    for (size_t a = 0; a < sizeof tops / sizeof *tops; a++)
        for (size_t b = 0; b < 5; b++)
            for (size_t c = 0; c < 5; c++) {
                struct sampler_settings settings = plain;
                settings.top_k = tops[a];
                settings.top_p = top_ps[b];
                settings.min_p = min_ps[c];
                int64_t count;
                struct candidate *candidates = list(&settings, logits, MANY, NULL, 0, &count);
                assert_int_equal(count, count_kept(&settings, sorted));
                double sum = 0.0;
                for (int64_t n = 0; n < count; n++) {
                    assert_true(candidates[n].logit == sorted[n]);
                    assert_true(candidates[n].logit == logits[candidates[n].id]);
                    sum += candidates[n].probability;
                }
                assert_true(fabs(sum - 1.0) <= 1e-12);
                free(candidates);
            }
}

/* A token at min-p itself stays, whether all are counted or a top is sorted. */
static void test_a_token_at_the_limit(void **state)
{
    (void)state;
    for (int n = 1; n <= 100; n++) {
        const float logits[] = {0.0f, (float)-n / 16.0f, -9.0f};
        struct sampler_settings settings = plain;
        settings.min_p = (double)expf(logits[1]);
        for (settings.top_k = 0; settings.top_k < 3; settings.top_k += 2) {
            int64_t count;
            struct candidate *candidates = list(&settings, logits, 3, NULL, 0, &count);
            assert_int_equal(count, 2);
            free(candidates);
        }
    }
}

static void test_temperature_comes_last(void **state)
{
    (void)state;
    /* At temperature 1 the third token is under min-p 0.2; hot, it would not be. */
    const float logits[] = {0.0f, -1.0f, -2.0f};
    struct sampler_settings settings = plain;
    settings.min_p = 0.2;
    settings.temperature = 100.0;
    int64_t count;
    struct candidate *candidates = list(&settings, logits, 3, NULL, 0, &count);
    assert_int_equal(count, 2);
    assert_true(fabs(candidates[0].probability - 1.0 / (1.0 + exp(-0.01))) <= 1e-12);
    free(candidates);
}

static void test_equal_logits_keep_their_order(void **state)
{
    (void)state;
    float logits[40];
    for (int i = 0; i < 40; i++)
        logits[i] = i % 4 == 1 ? 2.0f : 1.0f;
    struct sampler_settings settings = plain;
    settings.top_k = 12;
    int64_t count;
    struct candidate *candidates = list(&settings, logits, 40, NULL, 0, &count);
    const int32_t expected[] = {1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 0, 2};
    assert_int_equal(count, 12);
    for (int i = 0; i < 12; i++)
        assert_int_equal(candidates[i].id, expected[i]);
    free(candidates);
    settings.temperature = 0.0;
    candidates = list(&settings, logits, 40, NULL, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(candidates[0].id, 1);
    assert_true(candidates[0].probability == 1.0);
    free(candidates);
}

static void test_impossible_tokens_are_no_candidates(void **state)
{
    (void)state;
    const float logits[] = {-INFINITY, 1.0f, -INFINITY, 2.0f, -INFINITY};
    struct sampler_settings settings = plain;
    for (int64_t top = 0; top < 5; top++) {
        settings.top_k = top;
        int64_t count;
        struct candidate *candidates = list(&settings, logits, 5, NULL, 0, &count);
        assert_int_equal(count, top == 1 ? 1 : 2);
        assert_int_equal(candidates[0].id, 3);
        free(candidates);
        struct sampler *sampler = create(&settings, 5);
        for (int n = 0; n < 100; n++)
            assert_int_equal(draw(sampler, logits).id % 2, 1);
        sampler_destroy(sampler);
    }
}

static void test_penalty_of_the_last_tokens(void **state)
{
    (void)state;
    const float logits[] = {4.0f, 3.0f, 2.0f, 1.0f};
    const int32_t seen[] = {0, 1, 1, 2, 99, -1};
    struct sampler_settings settings = plain;
    settings.repeat_penalty = 2.0;
    const struct {
        int64_t last;
        float expected[4];
    } cases[] = {{0, {4.0f, 3.0f, 2.0f, 1.0f}},   {2, {4.0f, 3.0f, 2.0f, 1.0f}},
                 {3, {4.0f, 3.0f, 1.0f, 1.0f}},   {5, {4.0f, 1.5f, 1.0f, 1.0f}},
                 {6, {2.0f, 1.5f, 1.0f, 1.0f}},   {-1, {2.0f, 1.5f, 1.0f, 1.0f}},
                 {1000, {2.0f, 1.5f, 1.0f, 1.0f}}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        settings.repeat_last = cases[n].last;
        struct sampler *sampler = create(&settings, 4);
        for (int again = 0; again < 2; again++) {
            const struct candidate *candidates;
            int64_t count;
            struct attn_error error;
            assert_true(sampler_candidates(sampler, logits, seen, 6, &candidates, &count, &error));
            assert_int_equal(count, 4);
            for (int64_t i = 0; i < count; i++)
                assert_true(candidates[i].logit == cases[n].expected[candidates[i].id]);
        }
        sampler_destroy(sampler);
    }
}

static void test_penalty_leaves_logits_finite(void **state)
{
    (void)state;
    const float logits[] = {1e30f, -1e30f, 0.0f, -INFINITY};
    const int32_t seen[] = {0, 1, 2, 3};
    struct sampler_settings settings = plain;
    settings.repeat_last = -1;
    const double penalties[] = {1e-300, 1e300};
    for (int n = 0; n < 2; n++) {
        settings.repeat_penalty = penalties[n];
        int64_t count;
        struct candidate *candidates = list(&settings, logits, 4, seen, 4, &count);
        assert_int_equal(count, 3);
        for (int64_t i = 0; i < count; i++)
            assert_true(isfinite(candidates[i].logit));
        free(candidates);
    }
}

/* Σ (counted − expected)² / expected of draws from the candidates' probabilities. */
static double chi_square(const struct sampler_settings *settings, const float *logits,
                         int64_t vocabulary, int64_t draws)
{
    int64_t count, counts[64] = {0};
    assert_true(vocabulary <= 64);
    struct candidate *candidates = list(settings, logits, vocabulary, NULL, 0, &count);
    struct sampler *sampler = create(settings, vocabulary);
    for (int64_t n = 0; n < draws; n++)
        counts[draw(sampler, logits).id]++;
    double sum = 0.0;
    int64_t counted = 0;
    for (int64_t n = 0; n < count; n++) {
        const double expected = candidates[n].probability * (double)draws;
        const double off = (double)counts[candidates[n].id] - expected;
        sum += off * off / expected;
        counted += counts[candidates[n].id];
    }
    assert_int_equal(counted, draws); /* nothing that was cut off is drawn */
    sampler_destroy(sampler);
    free(candidates);
    return sum;
}

static void test_draws_have_the_probabilities(void **state)
{
    (void)state;
    const float logits[] = {0.5f, 2.0f, -1.0f, 1.0f, 0.0f, 1.5f, -0.5f, 0.25f};
    struct sampler_settings settings = plain;
    for (int sorted = 0; sorted < 2; sorted++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            settings.seed = seed;
            settings.temperature = 0.5 + 0.5 * (double)seed;
            settings.top_k = sorted ? 6 : 0;
            /* 0.999 of all samples are below 24.3 (7 degrees of freedom) and 20.5 (5). */
            const double sum = chi_square(&settings, logits, 8, 100000);
            assert_true(sum <= (sorted ? 20.5 : 24.3));
        }
}

static void test_draws_depend_on_seed_and_number(void **state)
{
    (void)state;
    float logits[MANY];
    fill(logits);
    for (int all = 0; all < 2; all++) {
        struct sampler_settings settings = plain;
        settings.top_k = all ? 0 : 40;
        settings.seed = 7;
        struct sampler *one = create(&settings, MANY), *same = create(&settings, MANY);
        settings.seed = 8;
        struct sampler *other = create(&settings, MANY);
        int different = 0, repeated = 0;
        int32_t before = -1;
        for (int n = 0; n < 200; n++) {
            const int32_t id = draw(one, logits).id;
            assert_int_equal(id, draw(same, logits).id);
            different += id != draw(other, logits).id;
            repeated += id == before;
            before = id;
        }
        assert_true(different > 150 && repeated < 50);
        sampler_destroy(one);
        sampler_destroy(same);
        sampler_destroy(other);
    }
}

static void test_log_probability_is_the_models_own(void **state)
{
    (void)state;
    float logits[MANY];
    fill(logits);
    logits[3] = -INFINITY;
    double sum = 0.0;
    for (int i = 0; i < MANY; i++)
        sum += exp((double)logits[i] - 9.99);
    struct sampler_settings settings = plain;
    settings.top_k = 5;
    settings.temperature = 3.0;
    settings.repeat_penalty = 2.0;
    settings.repeat_last = 4;
    const int32_t seen[] = {1, 2, 3, 389};
    for (int cold = 0; cold < 2; cold++) {
        settings.temperature = cold ? 0.0 : 3.0;
        struct sampler *sampler = create(&settings, MANY);
        for (int n = 0; n < 20; n++) {
            struct drawn_token token;
            struct attn_error error;
            assert_true(sampler_draw(sampler, logits, seen, 4, &token, &error));
            const double expected = (double)logits[token.id] - 9.99 - log(sum);
            assert_true(fabs(token.log_probability - expected) <= 1e-5);
        }
        sampler_destroy(sampler);
    }
    settings.log_probabilities = false;
    struct sampler *sampler = create(&settings, MANY);
    assert_true(isnan(draw(sampler, logits).log_probability));
    sampler_destroy(sampler);
}

static void test_logits_that_are_refused(void **state)
{
    (void)state;
    /* Behind the last whole group of lanes too. */
    for (int place = 0; place < 37; place++)
        for (int kind = 0; kind < 2; kind++) {
            float logits[37] = {0.0f};
            logits[place] = kind ? NAN : INFINITY;
            struct sampler *sampler = create(&plain, 37);
            struct drawn_token token;
            struct attn_error error;
            assert_false(sampler_draw(sampler, logits, NULL, 0, &token, &error));
            assert_message(&error, "a token's logit is not finite");
            sampler_destroy(sampler);
        }
}

static void test_settings_that_are_refused(void **state)
{
    (void)state;
    const struct {
        struct sampler_settings settings;
        int64_t vocabulary;
        const char *message;
    } cases[] = {
        {{.repeat_penalty = 1.0, .temperature = NAN}, 9, "the temperature is not a number"},
        {{.repeat_penalty = 1.0, .temperature = -1.0}, 9, "the temperature is -1, expected 0"},
        {{.repeat_penalty = 1.0, .temperature = INFINITY}, 9, "the temperature is inf"},
        {{.repeat_penalty = 0.0}, 9, "the repeat penalty is 0, expected more than 0"},
        {{.repeat_penalty = NAN}, 9, "the repeat penalty is not a number"},
        {{.repeat_penalty = 1.0, .repeat_last = -2}, 9, "last tokens are -2"},
        {{.repeat_penalty = 1.0, .top_k = -1}, 9, "top-k is -1, expected 0 (all) or more"},
        {{.repeat_penalty = 1.0, .top_p = NAN}, 9, "top-p is not a number"},
        {{.repeat_penalty = 1.0, .top_p = -0.1}, 9, "top-p is -0.1"},
        {{.repeat_penalty = 1.0, .min_p = 1.5}, 9, "min-p is 1.5, expected 0 to 1"},
        {{.repeat_penalty = 1.0}, 0, "the vocabulary has 0 tokens"},
        {{.repeat_penalty = 1.0}, INT64_MAX, "expected 1 to"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct sampler *sampler;
        struct attn_error error;
        assert_false(sampler_create(&sampler, &cases[n].settings, cases[n].vocabulary, &error));
        assert_null(sampler);
        assert_message(&error, cases[n].message);
    }
}

static bool create_once(void *user, struct attn_error *error)
{
    struct sampler *sampler;
    if (!sampler_create(&sampler, user, 100, error))
        return false;
    sampler_destroy(sampler);
    return true;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct sampler_settings settings;
    sampler_settings_init(&settings);
    assert_int_equal(allocation_sweep(create_once, &settings), 2);
    settings.repeat_penalty = 1.1;
    assert_int_equal(allocation_sweep(create_once, &settings), 3);
    sampler_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),
        cmocka_unit_test(test_filters_keep_what_sorting_all_keeps),
        cmocka_unit_test(test_a_token_at_the_limit),
        cmocka_unit_test(test_temperature_comes_last),
        cmocka_unit_test(test_equal_logits_keep_their_order),
        cmocka_unit_test(test_impossible_tokens_are_no_candidates),
        cmocka_unit_test(test_penalty_of_the_last_tokens),
        cmocka_unit_test(test_penalty_leaves_logits_finite),
        cmocka_unit_test(test_draws_have_the_probabilities),
        cmocka_unit_test(test_draws_depend_on_seed_and_number),
        cmocka_unit_test(test_log_probability_is_the_models_own),
        cmocka_unit_test(test_logits_that_are_refused),
        cmocka_unit_test(test_settings_that_are_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
