/* What a gradient is not told of, and each allocation failing in turn. */
#include <stdlib.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/text_gradient_memory.h"
#include "scratch_folder.h"
#include "text_gradient_scene.h"
#include "tiny_model.h"

static void test_an_observer_that_says_no(void **state)
{
    (void)state;
    char *path = test_data_path("models/bert");
    struct gradient_scene scene = gradient_scene_open(path);
    gradient_scene_give(&scene, 4);
    struct compute compute = make_compute(1);
    struct gradient_watch watch = {.stop = 1};
    struct gradient_subject subject;
    struct attn_error error;
    assert_false(gradient_scene_run(&scene, &compute, &watch, &subject, &error));
    assert_message(&error, "that is enough");
    assert_int_equal(watch.next, 0);
    compute_destroy(&compute);
    gradient_scene_close(&scene);
    free(path);
}

/* Refused as text_model_read refuses it, before anything is shown. */
static void check_refused(const struct gradient_scene *scene, const char *message)
{
    struct compute compute = make_compute(1);
    struct gradient_watch watch = {.stop = -1};
    struct gradient_subject subject;
    struct attn_error error, of_reading;
    assert_false(gradient_scene_run(scene, &compute, &watch, &subject, &error));
    assert_message(&error, message);
    assert_false(
        text_model_read(scene->model, &compute, &scene->encoding, NULL, NULL, &of_reading));
    assert_string_equal(error.message, of_reading.message);
    assert_int_equal(watch.next, text_model_get_settings(scene->model)->layers - 1);
    compute_destroy(&compute);
}

static void check_texts_refused(const char *name)
{
    char *path = test_data_path(name);
    struct gradient_scene scene = gradient_scene_open(path);
    const struct text_model_settings *settings = text_model_get_settings(scene.model);
    gradient_scene_give(&scene, (size_t)settings->positions + 1);
    check_refused(&scene, "positions");
    scene.encoding.token_count = 0;
    check_refused(&scene, "no token");
    scene.encoding.token_count = 2;
    scene.encoding.tokens[1].id = (int32_t)settings->vocabulary;
    check_refused(&scene, "outside the model's vocabulary");
    scene.encoding.tokens[1].id = -1;
    check_refused(&scene, "outside the model's vocabulary");
    scene.encoding.tokens[1].id = 0;
    scene.encoding.tokens[1].type = 2;
    if (settings->kind == MODEL_BERT)
        check_refused(&scene, "type");
    gradient_scene_close(&scene);
    free(path);
}

static void test_texts_refused(void **state)
{
    (void)state;
    check_texts_refused("models/bert");
    check_texts_refused("models/causal/gpt2_f32");
    check_texts_refused("models/causal/llama_blocks.gguf");
}

/* With this number in a norm of the last layer. */
static void check_weight_refused(const char *name, const char *tensor, double number)
{
    struct tiny_model tiny = tiny_model_read(name);
    json_t *data = json_object_get(json_object_get(tiny.tensors, tensor), "data");
    assert_non_null(data);
    json_array_set_new(data, 0, json_real(number));
    char *folder = tiny_model_save(&tiny);
    struct gradient_scene scene = gradient_scene_open(folder);
    gradient_scene_give(&scene, 3);
    check_refused(&scene, "not finite");
    gradient_scene_close(&scene);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

static void test_weights_refused(void **state)
{
    (void)state;
    check_weight_refused("tiny_bert", "encoder.layer.0.output.LayerNorm.weight", 3e38);
    check_weight_refused("tiny_llama", "model.layers.0.post_attention_layernorm.weight", 3e38);
}

/* A model whose numbers are finite on the way forward, and not on the way back. */
static void test_gradients_refused(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    json_t *gain = json_object_get(
        json_object_get(tiny.tensors, "encoder.layer.1.output.LayerNorm.weight"), "data");
    for (size_t n = 0; n < json_array_size(gain); n++)
        json_array_set_new(gain, n, json_real(1e25));
    char *folder = tiny_model_save(&tiny);
    struct gradient_scene scene = gradient_scene_open(folder);
    gradient_scene_give(&scene, 3);
    struct compute compute = make_compute(1);
    struct gradient_watch watch = {.stop = -1};
    struct gradient_subject subject;
    struct attn_error error;
    if (!text_model_read(scene.model, &compute, &scene.encoding, NULL, NULL, &error))
        fail_msg("%s", error.message);
    assert_false(gradient_scene_run(&scene, &compute, &watch, &subject, &error));
    assert_message(&error, "not finite");
    assert_int_equal(watch.next, text_model_get_settings(scene.model)->layers - 1);
    compute_destroy(&compute);
    gradient_scene_close(&scene);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

/* A text that no machine has the memory for, and one whose size is no number. */
static void test_memory_refused(void **state)
{
    (void)state;
    struct attn_workspace workspace = {0};
    struct attn_scratch counted = {.used = INT64_C(1) << 60}, memory;
    struct attn_error error;
    assert_false(text_gradient_memory_reserve(&workspace, &counted, 12345, &memory, &error));
    assert_message(&error, "the gradient of a text of 12345 tokens takes 1073741824.0 GiB, ");
    assert_message(&error, " GiB are available: a shorter text takes less");
    counted = (struct attn_scratch){.used = 64, .overflow = true};
    assert_false(text_gradient_memory_reserve(&workspace, &counted, 12345, &memory, &error));
    assert_message(&error, "out of memory");
}

struct attempt {
    struct gradient_scene scene;
    struct compute compute;
};

static bool run_once(void *user, struct attn_error *error)
{
    const struct attempt *attempt = user;
    struct gradient_watch watch = {.stop = -1};
    struct gradient_subject subject;
    return gradient_scene_run(&attempt->scene, &attempt->compute, &watch, &subject, error);
}

/* With a context of its own, which has to ask for what attention keeps. */
static void test_allocations(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/text_gradient.json");
    const json_t *texts = case_field(file, "texts", NULL);
    for (size_t n = 0; n < json_array_size(texts); n += 3) {
        struct attempt attempt = {gradient_scene_golden(json_array_get(texts, n)), make_compute(1)};
        assert_true(allocation_sweep(run_once, &attempt) >= 3);
        compute_destroy(&attempt.compute);
        gradient_scene_close(&attempt.scene);
    }
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_observer_that_says_no), cmocka_unit_test(test_texts_refused),
        cmocka_unit_test(test_weights_refused),          cmocka_unit_test(test_gradients_refused),
        cmocka_unit_test(test_memory_refused),           cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
