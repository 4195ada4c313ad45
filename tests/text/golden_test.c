/* Ids, types, words and offsets as the reference tokenizer gives them. */
#include <stdlib.h>

#include "tokenizer_test.h"

static json_int_t number(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

static void compare_tokens(const struct encoding *encoding, const json_t *expected)
{
    assert_int_equal(encoding->token_count, json_array_size(expected));
    for (size_t i = 0; i < encoding->token_count; i++) {
        const struct token *token = &encoding->tokens[i];
        const json_t *row = json_array_get(expected, i);
        assert_int_equal(token->id, number(row, 0));
        assert_int_equal(token->type, number(row, 1));
        assert_int_equal(token->text, number(row, 2));
        assert_int_equal(token->word, number(row, 3));
        assert_int_equal(token->begin, number(row, 4));
        assert_int_equal(token->end, number(row, 5));
    }
}

static void compare_words(const struct encoding *encoding, const json_t *expected)
{
    assert_int_equal(encoding->word_count, json_array_size(expected));
    for (size_t i = 0; i < encoding->word_count; i++) {
        const struct word *word = &encoding->words[i];
        const json_t *row = json_array_get(expected, i);
        assert_int_equal(word->text, number(row, 0));
        assert_int_equal(word->begin, number(row, 1));
        assert_int_equal(word->end, number(row, 2));
    }
}

static void compare(const struct tokenizer *tokenizer, const json_t *answer)
{
    size_t size, pair_size = 0;
    const json_t *pair_json = json_object_get(answer, "pair");
    char *text = expand_text(json_object_get(answer, "text"), &size);
    char *pair = pair_json ? expand_text(pair_json, &pair_size) : NULL;
    bool plain = json_is_true(json_object_get(answer, "plain"));
    struct encoding encoding =
        encode(tokenizer, text, size, pair, pair_size, plain ? SPECIAL_PLAIN : SPECIAL_READ);
    compare_tokens(&encoding, json_object_get(answer, "tokens"));
    compare_words(&encoding, json_object_get(answer, "words"));
    encoding_release(&encoding);
    free(text);
    free(pair);
}

static void compare_all(const struct tokenizer *tokenizer, const json_t *answers)
{
    assert_true(json_array_size(answers) > 0);
    for (size_t i = 0; i < json_array_size(answers); i++) {
        print_message("# text %zu\n", i);
        compare(tokenizer, json_array_get(answers, i));
    }
}

static void test_model(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_model();
    json_t *answers = test_data_json("golden/tokenizer_model.json");
    compare_all(tokenizer, answers);
    json_decref(answers);
    tokenizer_close(tokenizer);
}

static void test_settings(void **state)
{
    (void)state;
    json_t *groups = test_data_json("golden/tokenizer_settings.json");
    assert_true(json_array_size(groups) > 0);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        print_message("# %s\n", json_string_value(json_object_get(group, "name")));
        json_t *description = small_description(json_object_get(group, "change"));
        struct tokenizer *tokenizer = open_description(description);
        compare_all(tokenizer, json_object_get(group, "texts"));
        tokenizer_close(tokenizer);
        json_decref(description);
    }
    json_decref(groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
