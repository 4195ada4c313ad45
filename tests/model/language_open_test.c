/* Language models from directories: the handed cases, and what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/language_model.h"
#include "scratch_folder.h"
#include "tiny_model.h"

enum { VOCABULARY = 11 };

static struct language_model *open_model(const struct tiny_model *tiny)
{
    char *folder = tiny_model_save(tiny);
    struct language_model *model;
    struct attn_error error;
    if (!language_model_open(&model, folder, 3, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder);
    return model;
}

static void assert_refused(const struct tiny_model *tiny, const char *message)
{
    char *folder = tiny_model_save(tiny);
    struct language_model *model;
    struct attn_error error;
    assert_false(language_model_open(&model, folder, 3, &error));
    assert_null(model);
    assert_message(&error, message);
    scratch_folder_remove(folder);
}

/* The logits of every prefix are those of the handed case. */
static void check_logits(struct language_model *model, const struct compute *compute,
                         const char *name)
{
    json_t *file = test_data_json("cases/models.json");
    const json_t *one = case_find(file, name);
    const json_t *numbers = json_array_get(case_field(one, "input", "ids"), 0);
    const double tolerance = json_number_value(case_field(one, "tolerance", NULL));
    float *expected = case_numbers(case_field(one, "expected", "logits"), NULL);
    int32_t ids[8];
    for (size_t t = 0; t < json_array_size(numbers); t++) {
        ids[t] = (int32_t)json_integer_value(json_array_get(numbers, t));
        float logits[VOCABULARY];
        struct attn_error error;
        assert_true(language_model_next(model, compute, ids, (int64_t)t + 1, logits, &error));
        assert_near(logits, expected + t * VOCABULARY, VOCABULARY, tolerance);
    }
    free(expected);
    json_decref(file);
}

static void handed_logits(const struct compute *compute)
{
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    struct language_model *model = open_model(&tiny);
    check_logits(model, compute, "gpt2_cached_in_two_parts");
    check_logits(model, compute, "gpt2_last_token_changed");
    language_model_close(model);
    tiny_model_free(&tiny);
}

static void test_handed_logits(void **state)
{
    (void)state;
    each_isa(2, handed_logits);
}

/* The loss of every place but the last has the same bits whatever the last token is, in one pass
 * over both texts. */
static void test_the_future_is_not_seen(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    struct language_model *model = open_model(&tiny);
    struct compute compute = make_compute(1);
    const int64_t starts[] = {0, 6};
    const int32_t first[] = {3, 1, 4, 1, 5, 9}, second[] = {3, 1, 4, 1, 5, 2};
    for (int t = 0; t < 6; t++) {
        int32_t labels[6];
        for (int i = 0; i < 6; i++)
            labels[i] = i == t ? 8 : CROSS_ENTROPY_IGNORE;
        struct cross_entropy sums[2] = {{0}};
        struct attn_error error;
        const struct language_batch one = {{1, starts}, first, labels},
                                    other = {{1, starts}, second, labels};
        assert_true(language_model_evaluate(model, &compute, &one, &sums[0], &error));
        assert_true(language_model_evaluate(model, &compute, &other, &sums[1], &error));
        assert_true((sums[0].loss == sums[1].loss) == (t < 5));
        assert_int_equal(sums[0].counts, 1);
    }
    compute_destroy(&compute);
    language_model_close(model);
    tiny_model_free(&tiny);
}

static json_t *copy_of(const struct tiny_model *tiny, const char *name)
{
    return json_deep_copy(json_object_get(tiny->tensors, name));
}

/* Names with and without the prefix, buffers that are no parameters, and a head that is the words.
 */
static void test_spellings(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    json_t *file = test_data_json("cases/checkpoints.json");
    const json_t *buffers =
        case_field(case_find(file, "causal_mask_saved_as_a_buffer"), "input", "also");
    for (int spelling = 0; spelling < 8; spelling++) {
        struct tiny_model tiny = tiny_model_read("tiny_gpt2");
        tiny.storage = spelling & 1 ? TINY_F64 : TINY_F32;
        if (spelling & 2)
            json_object_update(tiny.tensors, (json_t *)(uintptr_t)buffers);
        if (spelling & 4)
            tiny_model_rename(&tiny, "transformer.", false);
        if (spelling & 2)
            json_object_set_new(
                tiny.tensors, "lm_head.weight",
                copy_of(&tiny, spelling & 4 ? "transformer.wte.weight" : "wte.weight"));
        struct language_model *model = open_model(&tiny);
        check_logits(model, &compute, "gpt2_cached_in_two_parts");
        language_model_close(model);
        tiny_model_free(&tiny);
    }
    json_decref(file);
    compute_destroy(&compute);
}

static void test_transposed_projection(void **state)
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

static void test_a_head_of_its_own(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_gpt2");
    json_t *head = copy_of(&tiny, "wte.weight");
    json_array_set_new(json_object_get(head, "data"), 7, json_real(0.5078125));
    json_object_set_new(tiny.tensors, "lm_head.weight", head);
    assert_refused(&tiny, "/model.safetensors: lm_head.weight is not the same as wte.weight");
    json_object_set_new(head, "shape", json_loads("[4, 11]", 0, NULL));
    assert_refused(&tiny, "lm_head.weight has shape [4, 11], expected [11, 4]");
    tiny_model_free(&tiny);
}

/* Every tensor is needed, and is missed by its own name. */
static void test_missing_tensors(void **state)
{
    (void)state;
    const char *const models[] = {"tiny_gpt2", "tiny_bert"};
    for (int n = 0; n < 2; n++) {
        struct tiny_model whole = tiny_model_read(models[n]);
        const char *name;
        json_t *tensor;
        json_object_foreach (whole.tensors, name, tensor) {
            char message[256];
            snprintf(message, sizeof message, "the file has no tensor %s", name);
            struct tiny_model without = {json_deep_copy(whole.config),
                                         json_deep_copy(whole.tensors), TINY_F32};
            json_object_del(without.tensors, name);
            assert_refused(&without, message);
            tiny_model_free(&without);
        }
        tiny_model_free(&whole);
    }
}

/* What is promised beyond the file ends before memory is asked for it. */
static void test_settings_that_do_not_fit(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int value;
        const char *message;
    } cases[] = {
        {"vocab_size", 1000000, "wte.weight has shape [11, 4], expected [1000000, 4]"},
        {"n_embd", 1000000, "wte.weight has shape [11, 4], expected [11, 1000000]"},
        {"n_layer", 1000, "the file has no tensor h.2.ln_1.weight"},
        {"n_inner", 4000000, "mlp.c_fc.weight has shape [4, 16], expected [4, 4000000]"},
        {"n_positions", 9, "wpe.weight has shape [8, 4], expected [9, 4]"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct tiny_model tiny = tiny_model_read("tiny_gpt2");
        json_object_set_new(tiny.config, cases[n].name, json_integer(cases[n].value));
        assert_refused(&tiny, cases[n].message);
        tiny_model_free(&tiny);
    }
    struct tiny_model other = tiny_model_read("tiny_gpt2");
    json_object_set_new(other.config, "model_type", json_string("t5"));
    assert_refused(&other, "model_type t5 is not supported, only bert and gpt2 are");
    tiny_model_free(&other);
}

static const struct parameter *find(struct language_model *model, const char *name)
{
    const struct parameters *parameters = language_model_parameters(model);
    for (size_t n = 0; n < parameters->item_count; n++)
        if (strcmp(parameters->items[n].name, name) == 0)
            return &parameters->items[n];
    fail_msg("there is no parameter %s", name);
    return NULL;
}

/* A BERT without the head gets one, the same for the same seed; its words stay the file's. */
static void test_bert_without_a_head(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    tiny_model_rename(&tiny, "bert.", true);
    struct language_model *models[] = {open_model(&tiny), open_model(&tiny)};
    const struct parameters *first = language_model_parameters(models[0]);
    const struct parameters *second = language_model_parameters(models[1]);
    assert_memory_equal(first->values, second->values, (size_t)first->count * sizeof(float));
    const struct parameter *dense = find(models[0], "cls.predictions.transform.dense.weight");
    const struct parameter *gain = find(models[0], "cls.predictions.transform.LayerNorm.weight");
    const struct parameter *norm = find(models[0], "bert.embeddings.LayerNorm.weight");
    assert_true(first->values[dense->begin] != 0.0f && fabsf(first->values[dense->begin]) < 0.2f);
    assert_true(first->values[gain->begin] == 1.0f);
    const json_t *data =
        json_object_get(json_object_get(tiny.tensors, "bert.embeddings.LayerNorm.gamma"), "data");
    assert_true(first->values[norm->begin] == (float)json_number_value(json_array_get(data, 0)));
    language_model_close(models[0]);
    language_model_close(models[1]);

    json_object_set_new(tiny.tensors, "cls.predictions.bias",
                        json_loads("{\"shape\": [10], \"data\": [1,2,3,4,5,6,7,8,9,10]}", 0, NULL));
    assert_refused(&tiny, "the file has no tensor cls.predictions.transform.dense.weight");
    tiny_model_free(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_logits),
        cmocka_unit_test(test_the_future_is_not_seen),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_transposed_projection),
        cmocka_unit_test(test_a_head_of_its_own),
        cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_settings_that_do_not_fit),
        cmocka_unit_test(test_bert_without_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
