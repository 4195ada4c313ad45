#include "cmocka_test.h"

#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "model/bert_config.h"
#include "scratch_folder.h"

static bool read_config(const json_t *object, struct bert_config *config, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    char *text = json_dumps(object, 0);
    scratch_write_text(folder, "config.json", text);
    bool done = bert_config_read(config, folder, error);
    free(text);
    scratch_folder_remove(folder);
    return done;
}

/* The settings of the handed case "bert_without_epsilon", to be changed. */
static json_t *plain_config(void)
{
    json_t *file = test_data_json("cases/checkpoints.json");
    json_t *config =
        json_deep_copy(case_field(case_find(file, "bert_without_epsilon"), "input", "config"));
    json_decref(file);
    return config;
}

static void test_handed_case(void **state)
{
    (void)state;
    json_t *object = plain_config();
    struct bert_config config;
    struct attn_error error;
    assert_true(read_config(object, &config, &error));
    assert_true(config.norm_epsilon == 1e-12f);
    assert_int_equal(config.activation, ACTIVATION_GELU_ERF);
    assert_int_equal(config.vocabulary, 10);
    assert_int_equal(config.hidden, 4);
    assert_int_equal(config.layers, 1);
    assert_int_equal(config.heads, 2);
    assert_int_equal(config.inner, 8);
    assert_int_equal(config.positions, 8);
    assert_int_equal(config.types, 2);
    json_decref(object);
}

static void test_own_settings(void **state)
{
    (void)state;
    json_t *object = plain_config();
    json_object_set_new(object, "layer_norm_eps", json_real(1e-5));
    json_object_set_new(object, "hidden_act", json_string("gelu_new"));
    json_object_set_new(object, "position_embedding_type", json_string("absolute"));
    json_object_set_new(object, "is_decoder", json_false());
    json_object_set_new(object, "add_cross_attention", json_null());
    struct bert_config config;
    struct attn_error error;
    assert_true(read_config(object, &config, &error));
    assert_true(config.norm_epsilon == 1e-5f);
    assert_int_equal(config.activation, ACTIVATION_GELU_TANH);
    json_decref(object);
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *change; /* merged into the plain config */
        const char *message;
    } cases[] = {
        {"{\"hidden_act\": \"snake\"}", "config.json: hidden_act snake is not known"},
        {"{\"hidden_act\": 3}", "config.json: hidden_act is not a string"},
        {"{\"model_type\": \"gpt2\"}", "config.json: model_type gpt2 is not supported"},
        {"{\"model_type\": null}", "config.json: model_type is not a string"},
        {"{\"position_embedding_type\": \"relative_key\"}",
         "config.json: position_embedding_type relative_key is not supported"},
        {"{\"position_embedding_type\": 1}", "position_embedding_type is not a string"},
        {"{\"is_decoder\": true}", "config.json: is_decoder is not false"},
        {"{\"is_decoder\": \"no\"}", "config.json: is_decoder is not false"},
        {"{\"add_cross_attention\": true}", "config.json: add_cross_attention is not false"},
        {"{\"num_attention_heads\": 3}",
         "config.json: num_attention_heads 3 does not divide hidden_size 4"},
        {"{\"num_attention_heads\": 8}", "does not divide"},
        {"{\"num_attention_heads\": 0}", "num_attention_heads"},
        {"{\"hidden_size\": -4}", "hidden_size"},
        {"{\"hidden_size\": 4.0}", "hidden_size"},
        {"{\"hidden_size\": \"4\"}", "hidden_size"},
        {"{\"hidden_size\": 4611686018427387904}", "hidden_size"},
        {"{\"num_hidden_layers\": 1000000}", "num_hidden_layers"},
        {"{\"intermediate_size\": 1000001}", "intermediate_size"},
        {"{\"vocab_size\": 0}", "vocab_size"},
        {"{\"max_position_embeddings\": 9223372036854775807}", "max_position_embeddings"},
        {"{\"type_vocab_size\": true}", "type_vocab_size"},
        {"{\"layer_norm_eps\": -1e-12}", "config.json: layer_norm_eps"},
        {"{\"layer_norm_eps\": \"1e-12\"}", "config.json: layer_norm_eps"},
        {"{\"layer_norm_eps\": 2}", "config.json: layer_norm_eps"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        json_t *object = plain_config();
        json_t *change = json_loads(cases[n].change, 0, NULL);
        assert_non_null(change);
        json_object_update(object, change);
        struct bert_config config;
        struct attn_error error;
        assert_false(read_config(object, &config, &error));
        assert_message(&error, cases[n].message);
        json_decref(change);
        json_decref(object);
    }
}

static void test_every_field_is_needed(void **state)
{
    (void)state;
    const char *const fields[] = {
        "model_type",
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
        "hidden_act",
    };
    for (size_t n = 0; n < sizeof fields / sizeof fields[0]; n++) {
        json_t *object = plain_config();
        assert_int_equal(json_object_del(object, fields[n]), 0);
        struct bert_config config;
        struct attn_error error;
        char message[64];
        snprintf(message, sizeof message, "config.json has no %s", fields[n]);
        assert_false(read_config(object, &config, &error));
        assert_message(&error, message);
        json_decref(object);
    }
}

/* Text of the file never steers a terminal nor floods it. */
static void test_hostile_text(void **state)
{
    (void)state;
    char name[2000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "\x1b[2J", 4);
    json_t *object = plain_config();
    json_object_set_new(object, "model_type", json_string(name));
    struct bert_config config;
    struct attn_error error;
    assert_false(read_config(object, &config, &error));
    assert_null(strchr(error.message, '\x1b'));
    assert_true(strlen(error.message) < 200);
    json_decref(object);
}

static void test_missing_and_malformed(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct bert_config config;
    struct attn_error error;
    assert_false(bert_config_read(&config, folder, &error));
    assert_message(&error, "config.json");
    scratch_write_text(folder, "config.json", "{\"model_type\": \"bert\"");
    assert_false(bert_config_read(&config, folder, &error));
    assert_message(&error, "config.json");
    scratch_write_text(folder, "config.json", "[]");
    assert_false(bert_config_read(&config, folder, &error));
    assert_message(&error, "config.json");
    scratch_write_text(folder, "config.json", "{}");
    assert_false(bert_config_read(&config, folder, &error));
    assert_message(&error, folder);
    assert_message(&error, "/config.json has no model_type");
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_case),  cmocka_unit_test(test_own_settings),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_every_field_is_needed),
        cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_missing_and_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
