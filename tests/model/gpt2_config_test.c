#include "model/gpt2_config.h"

#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

static bool read_config(const json_t *object, struct gpt2_config *config, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    char *text = json_dumps(object, 0);
    scratch_write_text(folder, "config.json", text);
    bool done = gpt2_config_read(config, folder, error);
    free(text);
    scratch_folder_remove(folder);
    return done;
}

/* The settings of a handed case, to be changed. */
static json_t *handed_config(const char *name)
{
    json_t *file = test_data_json("cases/checkpoints.json");
    json_t *config = json_deep_copy(case_field(case_find(file, name), "input", "config"));
    json_decref(file);
    return config;
}

static void test_inner_size_null(void **state)
{
    (void)state;
    json_t *object = handed_config("gpt2_inner_size_null");
    for (int absent = 0; absent < 2; absent++) {
        struct gpt2_config config;
        struct attn_error error;
        if (!read_config(object, &config, &error))
            fail_msg("%s", error.message);
        assert_int_equal(config.vocabulary, 11);
        assert_int_equal(config.hidden, 8);
        assert_int_equal(config.heads, 2);
        assert_int_equal(config.layers, 1);
        assert_int_equal(config.positions, 16);
        assert_int_equal(config.inner, 32);
        assert_true(config.norm_epsilon == 1e-5f);
        assert_true(config.dropout == 0.1f);
        assert_int_equal(config.activation, ACTIVATION_GELU_TANH);
        json_object_del(object, "n_inner");
    }
    json_decref(object);
}

static void test_head_count_missing(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/checkpoints.json");
    const json_t *one = case_find(file, "gpt2_without_head_count");
    struct gpt2_config config;
    struct attn_error error;
    assert_false(read_config(case_field(one, "input", "config"), &config, &error));
    assert_message(&error, json_string_value(case_field(one, "expected", "refused")));
    json_decref(file);
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *change; /* merged into the handed config */
        const char *message;
    } cases[] = {
        {"{\"activation_function\": \"snake\"}",
         "config.json: activation_function snake is not known"},
        {"{\"activation_function\": 3}", "activation_function is not a string"},
        {"{\"model_type\": \"bert\"}", "model_type bert is not supported"},
        {"{\"n_head\": 3}", "n_head 3 does not divide n_embd 8"},
        {"{\"n_head\": 0}", "n_head is 0, expected a whole number"},
        {"{\"n_inner\": \"wide\"}", "n_inner is \"wide\", expected a whole number"},
        {"{\"n_layer\": 1001}", "n_layer is 1001"},
        {"{\"n_positions\": null}", "config.json has no n_positions"},
        {"{\"layer_norm_epsilon\": -1}", "layer_norm_epsilon is not a number between 0 and 1"},
        {"{\"resid_pdrop\": 2}", "resid_pdrop is not a number between 0 and 1"},
        {"{\"scale_attn_weights\": false}", "scale_attn_weights is not true"},
        {"{\"scale_attn_by_inverse_layer_idx\": true}",
         "scale_attn_by_inverse_layer_idx is not false"},
        {"{\"reorder_and_upcast_attn\": true}", "reorder_and_upcast_attn is not false"},
        {"{\"add_cross_attention\": true}", "add_cross_attention is not false"},
        {"{\"tie_word_embeddings\": false}", "tie_word_embeddings is not true"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        json_t *object = handed_config("gpt2_inner_size_null");
        json_t *change = json_loads(cases[n].change, 0, NULL);
        assert_non_null(change);
        json_object_update(object, change);
        struct gpt2_config config;
        struct attn_error error;
        assert_false(read_config(object, &config, &error));
        assert_message(&error, cases[n].message);
        json_decref(change);
        json_decref(object);
    }
}

static void test_written_is_read(void **state)
{
    (void)state;
    const enum activation activations[] = {ACTIVATION_GELU_TANH, ACTIVATION_GELU_ERF,
                                           ACTIVATION_RELU, ACTIVATION_SILU};
    for (size_t n = 0; n < sizeof activations / sizeof activations[0]; n++) {
        const struct gpt2_config config = {.vocabulary = 50257,
                                           .hidden = 12,
                                           .layers = 3,
                                           .heads = 4,
                                           .inner = 17,
                                           .positions = 1024,
                                           .norm_epsilon = 1e-5f,
                                           .dropout = 0.1f,
                                           .activation = activations[n]};
        char *folder = scratch_folder_create();
        struct gpt2_config read;
        struct attn_error error;
        assert_true(gpt2_config_write(&config, n == 0 ? -1 : 50256, folder, &error));
        if (!gpt2_config_read(&read, folder, &error))
            fail_msg("%s", error.message);
        assert_int_equal(read.vocabulary, config.vocabulary);
        assert_int_equal(read.hidden, config.hidden);
        assert_int_equal(read.layers, config.layers);
        assert_int_equal(read.heads, config.heads);
        assert_int_equal(read.inner, config.inner);
        assert_int_equal(read.positions, config.positions);
        assert_true(read.norm_epsilon == config.norm_epsilon && read.dropout == config.dropout);
        assert_int_equal(read.activation, config.activation);
        char *text = scratch_read_text(folder, "config.json");
        assert_non_null(
            strstr(text, n == 0 ? "\"eos_token_id\": null" : "\"eos_token_id\": 50256"));
        free(text);
        scratch_folder_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inner_size_null),
        cmocka_unit_test(test_head_count_missing),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
