/* The default generator from its GGUF file against LlamaForCausalLM with the same weights as
 * floats: tests/data/golden/generator.{json,bin}, made by scripts/golden_causal.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"

enum { WRITTEN = 64, PROMPTS = 10, LONGEST = 64 };

static struct causal_scene scene;

struct golden_prompt {
    int64_t tokens;
    int32_t ids[LONGEST], written[WRITTEN];
};

/* What the whole file says. */
struct golden_generator {
    struct golden_prompt prompts[PROMPTS];
    int64_t step, rows; /* of the logits */
    float *logits;      /* [PROMPTS][rows][every step-th of the vocabulary] */
};

static int64_t read_ids(const json_t *prompt, const char *name, int32_t *ids, size_t most)
{
    const json_t *numbers = case_field(prompt, name, NULL);
    assert_true(json_array_size(numbers) <= most);
    for (size_t n = 0; n < json_array_size(numbers); n++)
        ids[n] = (int32_t)json_integer_value(json_array_get(numbers, n));
    return (int64_t)json_array_size(numbers);
}

static int64_t kept(const struct golden_generator *golden)
{
    return (scene.vocabulary + golden->step - 1) / golden->step;
}

static struct golden_generator *read_golden(void)
{
    struct golden_generator *golden = calloc(1, sizeof *golden);
    json_t *file = test_data_json("golden/generator.json");
    const json_t *prompts = case_field(file, "prompts", NULL);
    assert_int_equal(json_array_size(prompts), PROMPTS);
    assert_int_equal(json_integer_value(case_field(file, "vocabulary", NULL)), scene.vocabulary);
    golden->step = json_integer_value(case_field(file, "step", NULL));
    golden->rows = json_integer_value(case_field(file, "rows", NULL));
    for (size_t n = 0; n < PROMPTS; n++) {
        struct golden_prompt *prompt = &golden->prompts[n];
        prompt->tokens = read_ids(json_array_get(prompts, n), "ids", prompt->ids, LONGEST);
        assert_int_equal(read_ids(json_array_get(prompts, n), "written", prompt->written, WRITTEN),
                         WRITTEN);
    }
    json_decref(file);
    size_t size;
    golden->logits = case_file_bytes("golden/generator.bin", &size);
    assert_int_equal(size, (size_t)(PROMPTS * golden->rows * kept(golden)) * sizeof(float));
    return golden;
}

static void free_golden(struct golden_generator *golden)
{
    free(golden->logits);
    free(golden);
}

static void test_logits(void **state)
{
    (void)state;
    struct golden_generator *golden = read_golden();
    struct compute compute = make_compute(1);
    const float *expected = golden->logits;
    double largest = 0.0;
    for (int n = 0; n < PROMPTS; n++) {
        const struct golden_prompt *prompt = &golden->prompts[n];
        const struct causal_manner manner = {.cache = CACHE_F32};
        float *logits = causal_scene_logits(&scene, &compute, &manner, prompt->ids, prompt->tokens);
        for (int64_t row = prompt->tokens - golden->rows; row < prompt->tokens; row++)
            for (int64_t word = 0; word < scene.vocabulary; word += golden->step) {
                const double distance =
                    causal_distance(&logits[row * scene.vocabulary + word], expected++, 1);
                if (!(distance <= largest))
                    largest = distance;
            }
        free(logits);
    }
    print_message("# logits differ by %.2g at most\n", largest);
    if (!(largest <= 1e-3))
        fail_msg("logits differ by %g", largest);
    compute_destroy(&compute);
    free_golden(golden);
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t n = 1; n < scene.vocabulary; n++)
        if (logits[n] > logits[best])
            best = n;
    return best;
}

/* All prompts side by side, each in its own sequence. */
static void write_greedily(const struct golden_generator *golden, const struct compute *compute,
                           enum cache_type cache, int32_t written[PROMPTS][WRITTEN])
{
    const struct causal_session_settings settings = {
        .sequences = PROMPTS,
        .capacity = LONGEST + WRITTEN,
        .cache = cache,
        .precision = ATTN_PRECISION_EXACT,
    };
    struct causal_session *session;
    struct attn_error error;
    assert_true(causal_session_create(&session, scene.model, compute, &settings, &error));
    int64_t starts[PROMPTS + 1] = {0}, next[PROMPTS + 1] = {0};
    int32_t ids[PROMPTS * LONGEST];
    for (int n = 0; n < PROMPTS; n++) {
        const struct golden_prompt *prompt = &golden->prompts[n];
        memcpy(ids + starts[n], prompt->ids, (size_t)prompt->tokens * sizeof *ids);
        starts[n + 1] = starts[n] + prompt->tokens;
        next[n + 1] = n + 1;
    }
    float *logits = calloc((size_t)(PROMPTS * scene.vocabulary), sizeof *logits);
    struct causal_input input = {PROMPTS, NULL, starts, ids, CAUSAL_LAST};
    for (int t = 0; t < WRITTEN; t++) {
        if (!causal_session_read(session, &input, NULL, logits, &error))
            fail_msg("%s", error.message);
        for (int n = 0; n < PROMPTS; n++)
            ids[n] = written[n][t] = likeliest(logits + n * scene.vocabulary);
        input.starts = next;
    }
    free(logits);
    causal_session_destroy(session);
}

static void assert_written(const struct golden_generator *golden, int32_t written[PROMPTS][WRITTEN])
{
    for (int n = 0; n < PROMPTS; n++)
        for (int t = 0; t < WRITTEN; t++)
            if (written[n][t] != golden->prompts[n].written[t])
                fail_msg("prompt %d, word %d: %d is written, expected %d", n, t, (int)written[n][t],
                         (int)golden->prompts[n].written[t]);
}

static void test_greedy_texts(void **state)
{
    (void)state;
    struct golden_generator *golden = read_golden();
    struct compute compute = make_compute(1);
    const enum cache_type types[] = {CACHE_F32, CACHE_F16};
    for (int n = 0; n < 2; n++) {
        int32_t written[PROMPTS][WRITTEN];
        write_greedily(golden, &compute, types[n], written);
        assert_written(golden, written);
    }
    compute_destroy(&compute);
    free_golden(golden);
}

/* A prompt and what is written behind it, newly allocated. */
static int32_t *whole_text(const struct golden_prompt *prompt, int64_t *tokens)
{
    int32_t *ids = calloc(LONGEST + WRITTEN, sizeof *ids);
    assert_non_null(ids);
    *tokens = prompt->tokens + WRITTEN - 1;
    memcpy(ids, prompt->ids, (size_t)prompt->tokens * sizeof *ids);
    memcpy(ids + prompt->tokens, prompt->written, (WRITTEN - 1) * sizeof *ids);
    return ids;
}

/* Token by token, each text alone: the same words, and the same logits as in one go. */
static void test_alone(void **state)
{
    (void)state;
    struct golden_generator *golden = read_golden();
    struct compute compute = make_compute(1);
    double largest = 0.0;
    for (int n = 0; n < PROMPTS; n++) {
        const struct golden_prompt *prompt = &golden->prompts[n];
        int64_t tokens;
        int32_t *ids = whole_text(prompt, &tokens);
        const struct causal_manner whole = {.cache = CACHE_F32};
        const struct causal_manner single = {.parts = {prompt->tokens, 1}};
        float *expected = causal_scene_logits(&scene, &compute, &whole, ids, tokens);
        float *logits = causal_scene_logits(&scene, &compute, &single, ids, tokens);
        const double distance = causal_distance(logits, expected, tokens * scene.vocabulary);
        largest = distance <= largest ? largest : distance;
        for (int t = 0; t < WRITTEN; t++)
            assert_int_equal(likeliest(logits + (prompt->tokens - 1 + t) * scene.vocabulary),
                             prompt->written[t]);
        free(logits);
        free(expected);
        free(ids);
    }
    print_message("# token by token logits differ by %.2g at most\n", largest);
    assert_true(largest <= 4e-4); /* 1e-5 of the largest logit */
    compute_destroy(&compute);
    free_golden(golden);
}

/* What the smaller types cost: the bounds that causal_model.h states. */
static void test_cache_types(void **state)
{
    (void)state;
    static const struct {
        enum cache_type type;
        double bound;
    } cases[] = {{CACHE_F16, 0.03}, {CACHE_BF16, 0.3}, {CACHE_I8, 1.2}};
    struct golden_generator *golden = read_golden();
    struct compute compute = make_compute(1);
    int64_t tokens;
    int32_t *ids = whole_text(&golden->prompts[4], &tokens);
    const struct causal_manner exact = {.cache = CACHE_F32};
    float *expected = causal_scene_logits(&scene, &compute, &exact, ids, tokens);
    for (int n = 0; n < 3; n++) {
        const struct causal_manner manner = {.cache = cases[n].type};
        float *logits = causal_scene_logits(&scene, &compute, &manner, ids, tokens);
        const double distance = causal_distance(logits, expected, tokens * scene.vocabulary);
        print_message("# %s: logits differ by %.2g at most\n", cache_type_name(cases[n].type),
                      distance);
        assert_true(distance <= cases[n].bound);
        free(logits);
    }
    free(expected);
    free(ids);
    compute_destroy(&compute);
    free_golden(golden);
}

static void test_settings(void **state)
{
    (void)state;
    const struct causal_settings *settings = causal_model_get_settings(scene.model);
    assert_int_equal(settings->kind, MODEL_LLAMA);
    assert_int_equal(settings->layers, 30);
    assert_int_equal(settings->heads, 9);
    assert_int_equal(settings->key_heads, 3);
    assert_int_equal(settings->head_size, 64);
    assert_int_equal(settings->context, 8192);
    assert_int_equal(settings->parameters, 134515008);
}

/* Opening reads what describes the weights, not the weights. */
static void test_opening_is_quick(void **state)
{
    (void)state;
    double fastest = 1.0;
    for (int n = 0; n < 5; n++) {
        const double begin = attn_clock();
        struct causal_scene one = causal_scene_open(getenv("ATTN_TEST_GENERATOR"));
        const double seconds = attn_clock() - begin;
        causal_scene_close(&one);
        fastest = seconds < fastest ? seconds : fastest;
    }
    print_message("# opened in %.2f ms\n", 1e3 * fastest);
    assert_true(fastest < 0.1);
}

int main(void)
{
    const char *path = getenv("ATTN_TEST_GENERATOR");
    if (!path || !*path) {
        printf("1..0 # SKIP ATTN_TEST_GENERATOR names no GGUF file\n");
        return 0;
    }
    scene = causal_scene_open(path);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),     cmocka_unit_test(test_opening_is_quick),
        cmocka_unit_test(test_logits),       cmocka_unit_test(test_alone),
        cmocka_unit_test(test_greedy_texts), cmocka_unit_test(test_cache_types),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    causal_scene_close(&scene);
    return failed;
}
