/* BERT on tiny models that are written for the test. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/bert.h"
#include "scratch_folder.h"
#include "tiny_model.h"

enum { HIDDEN = 4, LAYERS = 2, HEADS = 2 };

static struct bert *open_model(const struct tiny_model *tiny)
{
    char *folder = tiny_model_save(tiny);
    struct bert *model;
    struct attn_error error;
    if (!bert_open(&model, folder, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder); /* the map outlives the name */
    return model;
}

static void assert_refused(const struct tiny_model *tiny, const char *message)
{
    char *folder = tiny_model_save(tiny);
    struct bert *model;
    struct attn_error error;
    assert_false(bert_open(&model, folder, &error));
    assert_null(model);
    assert_message(&error, message);
    scratch_folder_remove(folder);
}

static struct bert_input one_text(const int32_t *ids, const int64_t starts[2])
{
    return (struct bert_input){.batch = {1, starts}, .ids = ids};
}

/* What the handed case "bert_one_sentence" expects. */
struct expectation {
    json_t *file;
    const json_t *expected;
    double tolerance;
};

static bool compare_weights(void *user, int64_t layer, const struct compute *compute,
                            const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    const struct expectation *expectation = user;
    float weights[HEADS * 4 * 4];
    attn_tensor all = attn_tensor_packed(weights, ATTN_F32, 1, HEADS, 4, 4);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &all),
                     ATTN_SUCCESS);
    const char *field = layer == 0 ? "weights_layer_0" : "weights_layer_1";
    float *expected = case_numbers(case_field(expectation->expected, field, NULL), NULL);
    assert_near(weights, expected, HEADS * 4 * 4, expectation->tolerance);
    free(expected);
    return true;
}

static void handed_sentence(const struct compute *compute)
{
    struct expectation expectation = {.file = test_data_json("cases/models.json")};
    const json_t *one = case_find(expectation.file, "bert_one_sentence");
    expectation.expected = case_field(one, "expected", NULL);
    expectation.tolerance = json_number_value(case_field(one, "tolerance", NULL));

    struct tiny_model tiny = tiny_model_read("tiny_bert");
    struct bert *model = open_model(&tiny);
    const int32_t ids[] = {1, 5, 7, 2};
    const int64_t starts[] = {0, 4};
    const struct bert_input input = one_text(ids, starts);
    const struct model_observer observer = {compare_weights, &expectation, NULL};
    float hidden[4 * HIDDEN];
    struct attn_error error;
    assert_true(bert_forward(model, compute, &input, hidden, &observer, &error));
    float *expected = case_numbers(case_field(expectation.expected, "hidden", NULL), NULL);
    assert_near(hidden, expected, 4 * HIDDEN, expectation.tolerance);

    free(expected);
    bert_close(model);
    tiny_model_free(&tiny);
    json_decref(expectation.file);
}

static void test_handed_sentence(void **state)
{
    (void)state;
    each_isa(1, handed_sentence);
}

/* What padding is for, without any: texts of several lengths in one batch, each as if it were
 * alone. */
static void batch_equals_each_alone(const struct compute *compute)
{
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    struct bert *model = open_model(&tiny);
    const int64_t starts[] = {0, 4, 5, 13, 21, 24};
    const int32_t ids[] = {1, 5, 7, 2, 9, 0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 7, 6, 5, 4, 3, 2, 3, 3, 3};
    const int32_t types[] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1,
                             1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1};
    const struct bert_input input = {.batch = {5, starts}, .ids = ids, .types = types};
    float together[24 * HIDDEN], alone[8 * HIDDEN];
    struct attn_error error;
    assert_true(bert_forward(model, compute, &input, together, NULL, &error));
    for (int n = 0; n < 5; n++) {
        const int64_t begin = starts[n], single_starts[] = {0, starts[n + 1] - begin};
        const struct bert_input single = {
            .batch = {1, single_starts}, .ids = ids + begin, .types = types + begin};
        assert_true(bert_forward(model, compute, &single, alone, NULL, &error));
        assert_near(alone, together + begin * HIDDEN, (size_t)single_starts[1] * HIDDEN, 1e-5);
    }
    bert_close(model);
    tiny_model_free(&tiny);
}

static void test_batch_equals_each_alone(void **state)
{
    (void)state;
    each_isa(2, batch_equals_each_alone);
}

/* Swapping the two types, in the table and in the input, changes nothing; swapping one of them
 * does. */
static void test_types_choose_their_row(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 5, 7, 3, 2}, types[] = {0, 0, 1, 1, 1}, swapped[] = {1, 1, 0, 0, 0};
    const int64_t starts[] = {0, 5};
    const struct bert_input input = {.batch = {1, starts}, .ids = ids, .types = types};
    const struct bert_input swapped_input = {.batch = {1, starts}, .ids = ids, .types = swapped};
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    struct bert *model = open_model(&tiny);
    json_t *table = json_object_get(
        json_object_get(tiny.tensors, "embeddings.token_type_embeddings.weight"), "data");
    for (int c = 0; c < HIDDEN; c++) {
        json_array_append(table, json_array_get(table, 0));
        json_array_remove(table, 0);
    }
    struct bert *swapped_model = open_model(&tiny);

    struct compute compute = make_compute(1);
    float plain[5 * HIDDEN], both[5 * HIDDEN], one[5 * HIDDEN];
    struct attn_error error;
    assert_true(bert_forward(model, &compute, &input, plain, NULL, &error));
    assert_true(bert_forward(swapped_model, &compute, &swapped_input, both, NULL, &error));
    assert_true(bert_forward(swapped_model, &compute, &input, one, NULL, &error));
    assert_memory_equal(plain, both, sizeof plain);
    assert_memory_not_equal(plain, one, sizeof plain);
    compute_destroy(&compute);
    bert_close(model);
    bert_close(swapped_model);
    tiny_model_free(&tiny);
}

static void run_tiny(const struct tiny_model *tiny, float hidden[5 * HIDDEN])
{
    struct bert *model = open_model(tiny);
    struct compute compute = make_compute(1);
    const int32_t ids[] = {1, 5, 7, 3, 2};
    const int64_t starts[] = {0, 5};
    const struct bert_input input = one_text(ids, starts);
    struct attn_error error;
    assert_true(bert_forward(model, &compute, &input, hidden, NULL, &error));
    compute_destroy(&compute);
    bert_close(model);
}

static void test_spellings_and_types_give_the_same_bits(void **state)
{
    (void)state;
    float plain[5 * HIDDEN], other[5 * HIDDEN];
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    run_tiny(&tiny, plain);
    tiny_model_free(&tiny);
    for (int storage = TINY_F32; storage <= TINY_BF16; storage++)
        for (int spelling = 0; spelling < 4; spelling++) {
            tiny = tiny_model_read("tiny_bert");
            tiny.storage = (enum tiny_storage)storage;
            tiny_model_rename(&tiny, spelling & 1 ? "bert." : "", spelling & 2);
            run_tiny(&tiny, other);
            assert_memory_equal(plain, other, sizeof plain);
            tiny_model_free(&tiny);
        }
}

static json_t *filled(int64_t rows, int64_t columns)
{
    json_t *data = json_array();
    for (int64_t n = 0; n < rows * columns; n++)
        json_array_append_new(data, json_real(0.25));
    return json_pack("{s:[I, I], s:o}", "shape", (json_int_t)rows, (json_int_t)columns, "data",
                     data);
}

/* Buffers, poolers and heads are of no concern, whatever their names look like. */
static void test_other_tensors_are_ignored(void **state)
{
    (void)state;
    float plain[5 * HIDDEN], other[5 * HIDDEN];
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    run_tiny(&tiny, plain);
    const char *const names[] = {"embeddings.position_ids",
                                 "pooler.dense.weight",
                                 "head.gamma",
                                 "x.beta_proj.weight",
                                 "cls.predictions.transform.LayerNorm.gamma",
                                 "encoder.layer.2.attention.self.query.weight"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        json_object_set_new(tiny.tensors, names[n], filled(3, 5));
    run_tiny(&tiny, other);
    assert_memory_equal(plain, other, sizeof plain);
    tiny_model_free(&tiny);
}

/* Every tensor is needed, and is missed by its own name. */
static void test_missing_tensor(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/checkpoints.json");
    const char *handed = json_string_value(
        case_field(case_find(file, "bert_tensor_missing"), "expected", "refused"));
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    json_object_del(tiny.tensors, "encoder.layer.1.attention.self.key.weight");
    assert_refused(&tiny, handed);
    tiny_model_free(&tiny);
    json_decref(file);

    for (int prefixed = 0; prefixed < 2; prefixed++) {
        struct tiny_model whole = tiny_model_read("tiny_bert");
        tiny_model_rename(&whole, prefixed ? "bert." : "", false);
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

/* gamma and beta stand for a norm's weight and bias, and for nobody else's. */
static void test_gamma_outside_a_norm(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    const char *const name = "encoder.layer.0.output.dense.bias";
    json_object_set(tiny.tensors, "encoder.layer.0.output.dense.beta",
                    json_object_get(tiny.tensors, name));
    json_object_del(tiny.tensors, name);
    assert_refused(&tiny,
                   "/model.safetensors: the file has no tensor encoder.layer.0.output.dense.bias");
    tiny_model_free(&tiny);
}

static void test_wrong_shape(void **state)
{
    (void)state;
    const struct {
        const char *name, *shape, *message;
    } cases[] = {
        {"encoder.layer.0.intermediate.dense.weight", "[4, 6]",
         "/model.safetensors: encoder.layer.0.intermediate.dense.weight has shape [4, 6], expected "
         "[6, 4]"},
        {"encoder.layer.1.output.dense.weight", "[24]", "has shape [24], expected [4, 6]"},
        {"encoder.layer.1.output.dense.bias", "[1, 4]",
         "encoder.layer.1.output.dense.bias has shape [1, 4], expected [4]"},
        {"embeddings.word_embeddings.weight", "[4, 10]", "has shape [4, 10], expected [10, 4]"},
        {"embeddings.LayerNorm.weight", "[2, 2]", "expected [4]"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct tiny_model tiny = tiny_model_read("tiny_bert");
        json_object_set_new(json_object_get(tiny.tensors, cases[n].name), "shape",
                            json_loads(cases[n].shape, 0, NULL));
        assert_refused(&tiny, cases[n].message);
        tiny_model_free(&tiny);
    }
}

/* Settings that promise more than the file holds end at the first tensor that does not fit. */
static void test_settings_that_do_not_fit(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int value;
        const char *message;
    } cases[] = {
        {"vocab_size", 1000000, "expected [1000000, 4]"},
        {"hidden_size", 1000000, "expected [10, 1000000]"},
        {"num_hidden_layers", 1000, "the file has no tensor encoder.layer.2."},
        {"intermediate_size", 1000000, "expected [1000000, 4]"},
        {"max_position_embeddings", 9, "position_embeddings.weight has shape [8, 4]"},
        {"type_vocab_size", 3, "token_type_embeddings.weight has shape [2, 4], expected [3, 4]"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct tiny_model tiny = tiny_model_read("tiny_bert");
        json_object_set_new(tiny.config, cases[n].name, json_integer(cases[n].value));
        assert_refused(&tiny, cases[n].message);
        tiny_model_free(&tiny);
    }
}

static void test_no_checkpoint(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = scratch_folder_create();
    char *config = json_dumps(tiny.config, 0);
    scratch_write_text(folder, "config.json", config);
    struct bert *model;
    struct attn_error error;
    assert_false(bert_open(&model, folder, &error));
    assert_message(&error, "model.safetensors");
    free(config);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
    bert_close(NULL);
}

static void test_input_out_of_range(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    struct bert *model = open_model(&tiny);
    struct compute compute = make_compute(1);
    const int32_t good[9] = {0}, high[] = {9, 10}, negative[] = {0, -1};
    const int64_t two[] = {0, 2}, nine[] = {0, 9}, empty[] = {0, 2, 2, 4}, late[] = {1, 3},
                  negative_start[] = {-1, 1}, falling[] = {0, 4, 2}, wrapping[] = {0, 4, INT64_MIN},
                  enormous[] = {0, 2, INT64_MAX};
    const struct {
        struct bert_input input;
        const char *message;
    } cases[] = {
        {{.batch = {1, two}, .ids = high}, "token id 10 is outside"},
        {{.batch = {1, two}, .ids = negative}, "token id -1 is outside"},
        {{.batch = {1, two}, .ids = good, .types = high}, "token type 9 is outside"},
        {{.batch = {1, two}, .ids = good, .types = negative}, "token type -1 is outside"},
        {{.batch = {1, nine}, .ids = good}, "9 tokens, the model has 8 positions"},
        {{.batch = {3, empty}, .ids = good}, "a text has no token"},
        {{.batch = {1, late}, .ids = good}, "starts at token 1 instead of 0"},
        {{.batch = {1, negative_start}, .ids = good}, "starts at token -1 instead of 0"},
        {{.batch = {2, falling}, .ids = good}, "starts fall from token 4 to 2"},
        {{.batch = {2, wrapping}, .ids = good}, "starts fall from token 4 to -9223372036854775808"},
        {{.batch = {2, enormous}, .ids = good}, "9223372036854775805 tokens, the model has 8"},
        {{.batch = {0, two}, .ids = good}, "the batch has no text"},
        {{.batch = {-1, two}, .ids = good}, "the batch has no text"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        float hidden[9 * HIDDEN];
        struct attn_error error;
        hidden[0] = 7.0f;
        assert_false(bert_forward(model, &compute, &cases[n].input, hidden, NULL, &error));
        assert_message(&error, cases[n].message);
        assert_true(hidden[0] == 7.0f);
    }
    compute_destroy(&compute);
    bert_close(model);
    tiny_model_free(&tiny);
}

static bool stop_at_second_layer(void *user, int64_t layer, const struct compute *compute,
                                 const struct attention_record *record, struct attn_error *error)
{
    (void)compute;
    (void)record;
    *(int64_t *)user = layer;
    return layer == 0 || attn_error_set(error, "stopped");
}

static void test_observer_may_stop(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    struct bert *model = open_model(&tiny);
    struct compute compute = make_compute(1);
    const int32_t ids[] = {1, 2};
    const int64_t starts[] = {0, 2};
    const struct bert_input input = one_text(ids, starts);
    int64_t last = -1;
    const struct model_observer observer = {stop_at_second_layer, &last, NULL};
    float hidden[2 * HIDDEN];
    struct attn_error error;
    assert_false(bert_forward(model, &compute, &input, hidden, &observer, &error));
    assert_message(&error, "stopped");
    assert_int_equal(last, 1);
    compute_destroy(&compute);
    bert_close(model);
    tiny_model_free(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_sentence),
        cmocka_unit_test(test_batch_equals_each_alone),
        cmocka_unit_test(test_types_choose_their_row),
        cmocka_unit_test(test_spellings_and_types_give_the_same_bits),
        cmocka_unit_test(test_other_tensors_are_ignored),
        cmocka_unit_test(test_missing_tensor),
        cmocka_unit_test(test_gamma_outside_a_norm),
        cmocka_unit_test(test_wrong_shape),
        cmocka_unit_test(test_settings_that_do_not_fit),
        cmocka_unit_test(test_no_checkpoint),
        cmocka_unit_test(test_input_out_of_range),
        cmocka_unit_test(test_observer_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
