/* The handed cases of GPT-2 and Llama. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "scratch_folder.h"
#include "tiny_model.h"

enum { LONGEST = 8 };

static struct causal_scene open_tiny(const struct tiny_model *tiny)
{
    char *folder = tiny_model_save(tiny);
    struct causal_scene scene = causal_scene_open(folder);
    scratch_folder_remove(folder);
    return scene;
}

static void assert_refused(const struct tiny_model *tiny, const char *message)
{
    char *folder = tiny_model_save(tiny);
    struct model_source *source;
    struct causal_model *model;
    struct attn_error error;
    assert_true(model_source_open(&source, folder, &error));
    assert_false(causal_model_open(&model, source, &error));
    assert_null(model);
    assert_message(&error, message);
    model_source_close(source);
    scratch_folder_remove(folder);
}

static int64_t read_ids(const json_t *one, const char *name, int32_t ids[LONGEST])
{
    const json_t *numbers = json_array_get(case_field(one, "input", name), 0);
    const size_t tokens = json_array_size(numbers);
    assert_true(tokens > 0 && tokens <= LONGEST);
    for (size_t t = 0; t < tokens; t++)
        ids[t] = (int32_t)json_integer_value(json_array_get(numbers, t));
    return (int64_t)tokens;
}

/* The logits of a case of models.json, in one part, in the case's parts and token by token. */
static void check_logits(const struct causal_scene *scene, const struct compute *compute,
                         const char *name)
{
    json_t *file = test_data_json("cases/models.json");
    const json_t *one = case_find(file, name);
    const json_t *parts = json_object_get(case_field(one, "input", NULL), "parts");
    const struct causal_manner manners[] = {
        {.cache = CACHE_F32},
        {.parts = {json_integer_value(json_array_get(parts, 0)),
                   json_integer_value(json_array_get(parts, 1))}},
        {.parts = {1}},
    };
    int32_t ids[LONGEST];
    const int64_t tokens = read_ids(one, "ids", ids);
    size_t count;
    float *expected = case_numbers(case_field(one, "expected", "logits"), &count);
    assert_int_equal(count, tokens * scene->vocabulary);
    for (int n = 0; n < 3; n++) {
        float *logits = causal_scene_logits(scene, compute, &manners[n], ids, tokens);
        assert_near(logits, expected, count, json_number_value(case_field(one, "tolerance", NULL)));
        free(logits);
    }
    free(expected);
    json_decref(file);
}

static void handed_logits(const struct compute *compute)
{
    const struct {
        const char *model, *name;
    } cases[] = {{"tiny_gpt2", "gpt2_cached_in_two_parts"},
                 {"tiny_gpt2", "gpt2_last_token_changed"},
                 {"tiny_llama", "llama_logits"}};
    for (int n = 0; n < 3; n++) {
        struct tiny_model tiny = tiny_model_read(cases[n].model);
        struct causal_scene scene = open_tiny(&tiny);
        check_logits(&scene, compute, cases[n].name);
        causal_scene_close(&scene);
        tiny_model_free(&tiny);
    }
}

static void test_handed_logits(void **state)
{
    (void)state;
    each_isa(2, handed_logits);
}

/* Logits before a token that changes keep their bits, and its own are the handed ones. */
static void last_token_changed(const struct compute *compute)
{
    json_t *file = test_data_json("cases/models.json");
    const json_t *one = case_find(file, "gpt2_last_token_changed");
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    struct causal_scene scene = open_tiny(&tiny);
    int32_t ids[LONGEST], changed_ids[LONGEST];
    const int64_t tokens = read_ids(one, "ids", ids), words = scene.vocabulary;
    assert_int_equal(read_ids(one, "ids_changed", changed_ids), tokens);
    const struct causal_manner manner = {.cache = CACHE_F32};
    float *logits = causal_scene_logits(&scene, compute, &manner, ids, tokens);
    float *changed = causal_scene_logits(&scene, compute, &manner, changed_ids, tokens);
    float *expected = case_numbers(case_field(one, "expected", "last_logits_changed"), NULL);
    const int64_t before = (tokens - 1) * words;
    assert_memory_equal(changed, logits, (size_t)before * sizeof *logits);
    assert_near(changed + before, expected, (size_t)words,
                json_number_value(case_field(one, "tolerance", NULL)));
    free(expected);
    free(changed);
    free(logits);
    causal_scene_close(&scene);
    tiny_model_free(&tiny);
    json_decref(file);
}

static void test_last_token_changed(void **state)
{
    (void)state;
    each_isa(1, last_token_changed);
}

/* Names with and without the prefix, buffers that are no parameters, a head that is the words, and
 * numbers of 16 bits. */
static void test_spellings(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    json_t *file = test_data_json("cases/checkpoints.json");
    const json_t *buffers =
        case_field(case_find(file, "causal_mask_saved_as_a_buffer"), "input", "also");
    for (int spelling = 0; spelling < 8; spelling++) {
        struct tiny_model tiny = tiny_model_read("tiny_gpt2");
        const char *words = spelling & 4 ? "transformer.wte.weight" : "wte.weight";
        tiny.storage = spelling & 1 ? TINY_F32_MISALIGNED : TINY_F32;
        if (spelling & 2)
            json_object_update(tiny.tensors, (json_t *)(uintptr_t)buffers);
        if (spelling & 4)
            tiny_model_rename(&tiny, "transformer.", false);
        if (spelling & 2)
            json_object_set(tiny.tensors, "lm_head.weight", json_object_get(tiny.tensors, words));
        struct causal_scene scene = open_tiny(&tiny);
        check_logits(&scene, &compute, "gpt2_cached_in_two_parts");
        causal_scene_close(&scene);
        tiny_model_free(&tiny);
    }
    json_decref(file);
    compute_destroy(&compute);
}

/* A Llama's table saved twice, and a buffer of older files. */
static void test_spellings_of_llama(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int own = 0; own < 2; own++) {
        struct tiny_model tiny = tiny_model_read("tiny_llama");
        json_object_set(tiny.tensors, "lm_head.weight",
                        json_object_get(tiny.tensors, "model.embed_tokens.weight"));
        json_object_set_new(tiny.tensors, "model.layers.1.self_attn.rotary_emb.inv_freq",
                            json_loads("{\"shape\": [2], \"data\": [1, 0.01]}", 0, NULL));
        json_object_set_new(tiny.config, "tie_word_embeddings", json_boolean(own == 0));
        struct causal_scene scene = open_tiny(&tiny);
        check_logits(&scene, &compute, "llama_logits");
        causal_scene_close(&scene);
        tiny_model_free(&tiny);
    }
    compute_destroy(&compute);
}

static void test_projection_already_transposed(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/checkpoints.json");
    const json_t *one = case_find(file, "gpt2_projection_already_transposed");
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    const char *name;
    json_t *shape;
    json_object_foreach ((json_t *)(uintptr_t)case_field(one, "input", "reshape"), name, shape)
        json_object_set(json_object_get(tiny.tensors, name), "shape", shape);
    assert_refused(&tiny, json_string_value(case_field(one, "expected", "refused")));
    tiny_model_free(&tiny);
    json_decref(file);
}

static void test_untied_without_a_head(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/checkpoints.json");
    const json_t *one = case_find(file, "llama_untied_without_a_head");
    struct tiny_model tiny = tiny_model_read("tiny_llama");
    json_object_update(tiny.config, (json_t *)(uintptr_t)case_field(one, "input", "config"));
    const char *message = json_string_value(case_field(one, "expected", "refused"));
    assert_refused(&tiny, message);
    json_object_del(tiny.config,
                    "tie_word_embeddings"); /* a Llama's default is a head of its own */
    assert_refused(&tiny, message);
    tiny_model_free(&tiny);
    json_decref(file);
}

/* Reads ids of numbers 0, 1, 2 …, behind what the session holds. */
static bool read_on(struct causal_session *session, int64_t tokens, float *logits,
                    struct attn_error *error)
{
    const int64_t starts[] = {0, tokens};
    const int32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const struct causal_input input = {1, NULL, starts, ids, logits ? CAUSAL_LAST : CAUSAL_NONE};
    return causal_session_read(session, &input, NULL, logits, error);
}

/* Position n_positions has no row. */
static void test_end_of_the_context(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    struct causal_scene scene = open_tiny(&tiny);
    struct compute compute = make_compute(1);
    struct attn_error error;
    struct causal_session *session = causal_scene_session(&scene, &compute, 1, CACHE_F16);
    assert_false(read_on(session, 9, NULL, &error));
    assert_message(&error, "text has 9 tokens, the model has 8 positions");
    assert_int_equal(causal_session_length(session, 0), 0);
    assert_true(read_on(session, 7, NULL, &error));
    assert_false(read_on(session, 2, NULL, &error));
    assert_message(&error, "the text has 9 tokens, the model has 8 positions");
    assert_int_equal(causal_session_length(session, 0), 7);
    assert_true(read_on(session, 1, NULL, &error));
    causal_session_destroy(session);

    struct causal_session_settings settings = {.sequences = 1, .capacity = 5};
    assert_true(causal_session_create(&session, scene.model, &compute, &settings, &error));
    assert_false(read_on(session, 6, NULL, &error));
    assert_message(&error, "the cache holds 5 tokens and is full: the text has 6");
    causal_session_destroy(session);

    settings.capacity = 9;
    assert_false(causal_session_create(&session, scene.model, &compute, &settings, &error));
    assert_message(&error, "a context of 9 tokens is asked for, the model has 8 positions");
    assert_null(session);
    causal_scene_close(&scene);
    compute_destroy(&compute);
    tiny_model_free(&tiny);
}

/* What is wrong is refused before anything is computed. */
static void test_wrong_inputs(void **state)
{
    (void)state;
    const int64_t one[] = {0, 2}, empty[] = {0, 0}, two[] = {0, 1, 2}, falling[] = {1, 0},
                  beyond[] = {0, 3};
    const int32_t ids[] = {3, 1, 4}, negative[] = {3, -1}, large[] = {11, 1};
    const struct {
        struct causal_input input;
        const char *message;
    } cases[] = {
        {{1, NULL, one, negative, CAUSAL_NONE}, "token id -1 is outside the model's vocabulary"},
        {{1, NULL, one, large, CAUSAL_NONE}, "token id 11 is outside the model's vocabulary of 11"},
        {{1, NULL, empty, ids, CAUSAL_NONE}, "a text has no token"},
        {{0, NULL, empty, ids, CAUSAL_NONE}, "the batch has no text"},
        {{2, falling, two, ids, CAUSAL_NONE}, "text 1 goes to sequence 0, expected rising"},
        {{1, beyond + 1, one, ids, CAUSAL_NONE}, "text 0 goes to sequence 3, expected rising"},
        {{3, NULL, two, ids, CAUSAL_NONE}, "3 texts are given, the session holds 2"},
    };
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    struct causal_scene scene = open_tiny(&tiny);
    struct compute compute = make_compute(1);
    struct causal_session *session = causal_scene_session(&scene, &compute, 2, CACHE_F16);
    struct attn_error error;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        assert_false(causal_session_read(session, &cases[n].input, NULL, NULL, &error));
        assert_message(&error, cases[n].message);
    }
    causal_session_destroy(session);
    compute_destroy(&compute);
    causal_scene_close(&scene);
    tiny_model_free(&tiny);
}

/* Wherever a NaN or an Inf comes from, no logits are told and no token is kept. */
static void test_numbers_that_are_not_finite(void **state)
{
    (void)state;
    const struct {
        const char *model, *tensor;
    } cases[] = {
        {"tiny_gpt2", "wpe.weight"},
        {"tiny_gpt2", "ln_f.weight"},
        {"tiny_gpt2", "h.1.mlp.c_proj.bias"},
        {"tiny_llama", "model.layers.0.self_attn.v_proj.weight"},
        {"tiny_llama", "model.norm.weight"},
    };
    struct compute compute = make_compute(1);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct tiny_model tiny = tiny_model_read(cases[n].model);
        json_t *data = json_object_get(json_object_get(tiny.tensors, cases[n].tensor), "data");
        json_array_set_new(data, 0, json_real(1e39)); /* Inf as a float */
        struct causal_scene scene = open_tiny(&tiny);
        struct causal_session *session = causal_scene_session(&scene, &compute, 1, CACHE_F32);
        float logits[16];
        struct attn_error error;
        assert_false(read_on(session, 3, logits, &error));
        assert_message(&error, "numbers that are not finite");
        assert_int_equal(causal_session_length(session, 0), 0);
        causal_session_destroy(session);
        causal_scene_close(&scene);
        tiny_model_free(&tiny);
    }
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_logits),
        cmocka_unit_test(test_last_token_changed),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_spellings_of_llama),
        cmocka_unit_test(test_projection_already_transposed),
        cmocka_unit_test(test_untied_without_a_head),
        cmocka_unit_test(test_end_of_the_context),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_numbers_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
