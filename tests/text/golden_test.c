/* Ids, types, words and offsets as the reference tokenizer gives them. */
#include "tokenizer_test.h"

static void test_model(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_model();
    json_t *answers = test_data_json("golden/tokenizer_model.json");
    assert_answers(tokenizer, answers);
    json_decref(answers);
    tokenizer_close(tokenizer);
}

/* Opens the tokenizer with each group's change. */
static void compare_groups(const json_t *groups, json_t *(*describe)(const json_t *change))
{
    assert_true(json_array_size(groups) > 0);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        print_message("# %s\n", json_string_value(json_object_get(group, "name")));
        json_t *description = describe(json_object_get(group, "change"));
        struct tokenizer *tokenizer = open_description(description);
        assert_answers(tokenizer, json_object_get(group, "texts"));
        tokenizer_close(tokenizer);
        json_decref(description);
    }
}

static void test_settings(void **state)
{
    (void)state;
    json_t *groups = test_data_json("golden/tokenizer_settings.json");
    compare_groups(groups, small_description);
    json_decref(groups);
}

static void test_bytes(void **state)
{
    (void)state;
    json_t *golden = test_data_json("golden/tokenizer_bytes_settings.json");
    compare_groups(json_object_get(golden, "groups"), bytes_description);
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
