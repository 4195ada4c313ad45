#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden_language.h"
#include "look_scene.h"
#include "probe/look.h"

static void test_pieces_into_words(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/labels.json");
    const json_t *one = case_find(file, "pieces_into_words");
    float *weights = case_numbers(case_field(one, "input", "weights"), NULL);
    float *expected = case_numbers(case_field(one, "expected", "weights"), NULL);
    const int32_t group[] = {0, 1, 1, 2};
    float merged[9];
    look_scene_merge(weights, 4, group, 3, merged);
    assert_near(merged, expected, 9, json_number_value(case_field(one, "tolerance", NULL)));
    free(weights);
    free(expected);
    json_decref(file);
}

/* Rows that sum to one still do, whatever the words, as long as nothing is left out; what is left
 * out takes its share with it. */
static void test_merge_keeps_sums(void **state)
{
    (void)state;
    enum { TOKENS = 13, UNITS = 5 };
    float weights[TOKENS * TOKENS], merged[UNITS * UNITS];
    for (int i = 0; i < TOKENS; i++) {
        float sum = 0.0f;
        for (int j = 0; j < TOKENS; j++)
            sum += weights[i * TOKENS + j] = 1.0f + sinf((float)(i * 31 + j * 17));
        for (int j = 0; j < TOKENS; j++)
            weights[i * TOKENS + j] /= sum;
    }
    const int32_t whole[TOKENS] = {0, 0, 1, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4};
    look_scene_merge(weights, TOKENS, whole, UNITS, merged);
    for (int i = 0; i < UNITS; i++) {
        double sum = 0.0;
        for (int j = 0; j < UNITS; j++)
            sum += (double)merged[i * UNITS + j];
        assert_true(fabs(sum - 1.0) <= 1e-6);
    }

    const int32_t part[TOKENS] = {-1, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4, -1};
    look_scene_merge(weights, TOKENS, part, UNITS, merged);
    for (int i = 0; i < UNITS; i++)
        for (int j = 0; j < UNITS; j++) {
            double sum = 0.0;
            int queries = 0;
            for (int q = 0; q < TOKENS; q++)
                if (part[q] == i) {
                    queries++;
                    for (int k = 0; k < TOKENS; k++)
                        if (part[k] == j)
                            sum += (double)weights[q * TOKENS + k];
                }
            assert_true(fabs((double)merged[i * UNITS + j] - sum / queries) <= 1e-6);
        }
}

static struct look look_at(const struct look_scene *scene, const struct look_head *heads,
                           size_t count, enum look_unit unit, bool special)
{
    const struct look_settings settings = {
        .heads = heads, .head_count = count, .unit = unit, .special = special};
    return look_scene_run(scene, &settings);
}

static void test_units(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    const struct look_head all = {LOOK_MEAN, LOOK_MEAN};
    const struct {
        enum look_unit unit;
        bool special;
        size_t units;
        size_t first[6], count[6];
        int32_t word[6];
    } cases[] = {
        {LOOK_WORDS, false, 3, {1, 3, 4}, {2, 1, 1}, {0, 1, 2}},
        {LOOK_WORDS, true, 5, {0, 1, 3, 4, 5}, {1, 2, 1, 1, 1}, {-1, 0, 1, 2, -1}},
        {LOOK_PIECES, false, 4, {1, 2, 3, 4}, {1, 1, 1, 1}, {0, 0, 1, 2}},
        {LOOK_PIECES, true, 6, {0, 1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1}, {-1, 0, 0, 1, 2, -1}},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct look look = look_at(&scene, &all, 1, cases[n].unit, cases[n].special);
        assert_int_equal(look.units, cases[n].units);
        for (size_t u = 0; u < look.units; u++) {
            assert_int_equal(look.first_token[u], cases[n].first[u]);
            assert_int_equal(look.token_counts[u], cases[n].count[u]);
            assert_int_equal(look.word[u], cases[n].word[u]);
        }
        look_release(&look);
    }
    look_scene_close(&scene);
}

/* Everything kept: each row sums to one. Added tokens left out: the same numbers, less to sum. */
static void test_weights_really_used(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    const struct look_head heads[] = {
        {LOOK_MEAN, LOOK_MEAN}, {1, LOOK_MEAN}, {0, 0}, {0, 1}, {1, 0}, {1, 1}};
    enum { COUNT = sizeof heads / sizeof heads[0] };
    struct look whole = look_at(&scene, heads, COUNT, LOOK_WORDS, true);
    struct look part = look_at(&scene, heads, COUNT, LOOK_WORDS, false);
    for (size_t n = 0; n < COUNT; n++) {
        const float *weights = whole.weights + n * 25, *inside = part.weights + n * 9;
        for (size_t i = 0; i < 5; i++) {
            double sum = 0.0;
            for (size_t j = 0; j < 5; j++)
                sum += (double)weights[i * 5 + j];
            assert_true(fabs(sum - 1.0) <= 1e-5);
        }
        for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 3; j++)
                assert_true(inside[i * 3 + j] == weights[(i + 1) * 5 + j + 1]);
    }
    look_release(&whole);
    look_release(&part);
    look_scene_close(&scene);
}

/* Two heads that disagree stay two; a mean is theirs, wherever it stands among the requests. */
static void test_means_are_of_the_heads(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    const struct look_head heads[] = {{0, 0}, {0, LOOK_MEAN}, {0, 1}, {LOOK_MEAN, LOOK_MEAN},
                                      {1, 1}, {1, 0},         {0, 0}};
    struct look look = look_at(&scene, heads, 7, LOOK_PIECES, true);
    const float *m[7];
    for (size_t n = 0; n < 7; n++)
        m[n] = look.weights + n * 36;
    double apart = 0.0;
    for (size_t i = 0; i < 36; i++) {
        double layer = ((double)m[0][i] + (double)m[2][i]) / 2.0;
        double all = layer / 2.0 + ((double)m[4][i] + (double)m[5][i]) / 4.0;
        assert_true(fabs((double)m[1][i] - layer) <= 1e-7);
        assert_true(fabs((double)m[3][i] - all) <= 1e-7);
        assert_true(m[0][i] == m[6][i]);
        apart = fmax(apart, fabs((double)m[0][i] - (double)m[2][i]));
    }
    assert_true(apart > 0.01);
    look_release(&look);
    look_scene_close(&scene);
}

static void test_heads_that_are_not_there(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    const char *const whole = "the model has 2 layers of 2 heads, counted from 0: there is no L9H3";
    const struct {
        struct look_head head;
        const char *message;
    } cases[] = {
        {{9, 3}, whole},
        {{0, 2}, "there is no L0H2"},
        {{2, 0}, "there is no L2H0"},
        {{1, -2}, "there is no L1H-2"},
        {{-2, 1}, "there is no L-2H1"},
        {{2, LOOK_MEAN}, "there is no layer 2"},
        {{LOOK_MEAN, 1}, "head 1 of no layer"},
        {{INT64_MAX, INT64_MAX}, "there is no L9223372036854775807H9223372036854775807"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const struct look_head heads[] = {{0, 0}, cases[n].head};
        const struct look_settings settings = {.heads = heads, .head_count = 2};
        struct look look;
        struct attn_error error;
        assert_false(
            look_run(scene.model, &scene.compute, &scene.encoding, &settings, &look, &error));
        assert_message(&error, cases[n].message);
        assert_null(look.weights);
    }
    look_scene_close(&scene);
}

static void test_texts_that_do_not_fit(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    const struct look_head all = {LOOK_MEAN, LOOK_MEAN};
    const struct look_settings settings = {.heads = &all, .head_count = 1, .special = true};
    struct look look;
    struct attn_error error;
    const int32_t ids[9] = {1, 2}, added[9] = {-1, -1}, words[9] = {0};

    struct encoding empty = look_scene_encoding(ids, added, 2),
                    longer = look_scene_encoding(ids, words, 9);
    assert_false(look_run(scene.model, &scene.compute, &empty, &settings, &look, &error));
    assert_message(&error, "no word");
    assert_false(look_run(scene.model, &scene.compute, &longer, &settings, &look, &error));
    assert_message(&error, "9 tokens, the model has 8 positions");
    look_release(&look); /* nothing is held, and that is allowed */

    const struct look_settings none = {.special = true};
    assert_false(look_run(scene.model, &scene.compute, &scene.encoding, &none, &look, &error));
    assert_message(&error, "no head");
    free(empty.tokens);
    free(longer.tokens);
    look_scene_close(&scene);
}

/* GPT-2 and Llama look back only: a later key's weight is exactly 0, and each row sums to one. */
static void check_looking_back(const char *name, enum model_kind kind)
{
    struct look_scene scene = look_scene_open(name);
    assert_int_equal(text_model_get_settings(scene.model)->kind, kind);
    const struct look_head heads[] = {{LOOK_MEAN, LOOK_MEAN}, {0, 1}, {1, 0}};
    struct look look = look_at(&scene, heads, 3, LOOK_PIECES, true);
    assert_int_equal(look.units, 6);
    for (size_t row = 0; row < 3 * 6; row++) {
        double sum = 0.0;
        for (size_t key = 0; key < 6; key++) {
            const float weight = look.weights[row * 6 + key];
            assert_true((weight == 0.0f) == (key > row % 6));
            sum += (double)weight;
        }
        assert_true(fabs(sum - 1.0) <= 1e-6);
    }
    look_release(&look);
    look_scene_close(&scene);
}

static void test_looking_back(void **state)
{
    (void)state;
    check_looking_back("tiny_gpt2", MODEL_GPT2);
    check_looking_back("tiny_llama", MODEL_LLAMA);
}

/* Every weight of every head as PyTorch has it. */
static void test_weights_of_language_models(void **state)
{
    (void)state;
    const char *const names[] = {"gpt2", "bert"};
    for (int n = 0; n < 2; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        struct look_scene scene = {.compute = make_compute(1)};
        struct attn_error error;
        assert_true(model_source_open(&scene.source, golden.directory, &error));
        assert_true(text_model_open(&scene.model, scene.source, &error));
        const int32_t words[12] = {0};
        enum { SEQUENCE = 2, TOKENS = 10 };
        assert_int_equal(packed_batch_length(&golden.batch.batch, SEQUENCE), TOKENS);
        scene.encoding = look_scene_encoding(golden.ids + golden.starts[SEQUENCE], words, TOKENS);

        const struct text_model_settings *settings = text_model_get_settings(scene.model);
        float *expected = case_numbers(case_field(golden.file, "attention", NULL), NULL);
        for (int64_t layer = 0; layer < settings->layers; layer++)
            for (int64_t head = 0; head < settings->heads; head++) {
                const struct look_head one = {layer, head};
                struct look look = look_at(&scene, &one, 1, LOOK_PIECES, true);
                assert_near(look.weights,
                            expected + (layer * settings->heads + head) * TOKENS * TOKENS,
                            TOKENS * TOKENS, 1e-6);
                look_release(&look);
            }
        free(expected);
        look_scene_close(&scene);
        golden_language_close(&golden);
    }
}

/* The same of models that tell the next token, from GGUF files too, and with grouped heads. */
static void test_weights_of_causal_models(void **state)
{
    (void)state;
    enum { TOKENS = 8 };
    const int32_t words[TOKENS] = {0};
    for (int n = 0; causal_golden_names[n]; n++) {
        struct causal_golden golden = causal_golden_open(causal_golden_names[n]);
        struct look_scene scene = {.compute = make_compute(1),
                                   .encoding = look_scene_encoding(golden.ids, words, TOKENS)};
        struct attn_error error;
        assert_true(text_model_open(&scene.model, golden.scene.source, &error));
        const int64_t heads = text_model_get_settings(scene.model)->heads;
        const int64_t layers = text_model_get_settings(scene.model)->layers;
        for (int64_t layer = 0; layer < layers; layer++)
            for (int64_t head = 0; head < heads; head++) {
                const struct look_head one = {layer, head};
                struct look look = look_at(&scene, &one, 1, LOOK_PIECES, true);
                const int64_t begin = (layer * heads + head) * TOKENS * TOKENS;
                assert_near(look.weights, golden.attention + begin, TOKENS * TOKENS, 1e-6);
                look_release(&look);
            }
        look_scene_close(&scene);
        causal_golden_close(&golden);
    }
}

static bool look_once(void *user, struct attn_error *error)
{
    const struct look_scene *scene = user;
    const struct look_head heads[] = {{LOOK_MEAN, LOOK_MEAN}, {1, 1}};
    const struct look_settings settings = {.heads = heads, .head_count = 2};
    struct look look;
    bool done = look_run(scene->model, &scene->compute, &scene->encoding, &settings, &look, error);
    if (!done)
        assert_null(look.weights);
    look_release(&look);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    const char *const names[] = {"tiny_bert", "tiny_gpt2", "tiny_llama"};
    for (int n = 0; n < 3; n++) {
        struct look_scene scene = look_scene_open(names[n]);
        assert_true(allocation_sweep(look_once, &scene) >= 8);
        look_scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_into_words),
        cmocka_unit_test(test_merge_keeps_sums),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_weights_really_used),
        cmocka_unit_test(test_means_are_of_the_heads),
        cmocka_unit_test(test_heads_that_are_not_there),
        cmocka_unit_test(test_texts_that_do_not_fit),
        cmocka_unit_test(test_looking_back),
        cmocka_unit_test(test_weights_of_language_models),
        cmocka_unit_test(test_weights_of_causal_models),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
