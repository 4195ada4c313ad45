/* The handed cases of tests/data/cases/tokenizer.json that are BERT's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/bert_normalizer.h"
#include "tokenizer_test.h"

static void check_encoding(const struct tokenizer *tokenizer, const struct encoding *encoding,
                           const json_t *expected)
{
    const json_t *count = json_object_get(expected, "count");
    const json_t *ids = json_object_get(expected, "ids"),
                 *types = json_object_get(expected, "types");
    const json_t *pieces = json_object_get(expected, "tokens");
    size_t tokens = count ? (size_t)json_integer_value(count) : json_array_size(ids ? ids : pieces);
    assert_int_equal(encoding->token_count, tokens);
    for (size_t i = 0; i < tokens; i++) {
        const struct token *token = &encoding->tokens[i];
        if (ids)
            assert_int_equal(token->id, json_integer_value(json_array_get(ids, i)));
        if (types)
            assert_int_equal(token->type, json_integer_value(json_array_get(types, i)));
        if (pieces)
            assert_string_equal(tokenizer_piece(tokenizer, token->id),
                                json_string_value(json_array_get(pieces, i)));
    }
}

static void run_encoding(const struct tokenizer *tokenizer, const json_t *input,
                         const json_t *expected)
{
    const json_t *text_json = json_object_get(input, "text"),
                 *pair = json_object_get(input, "pair");
    size_t size;
    char *text = expand_text(text_json ? text_json : input, &size);
    struct encoding encoding = encode(tokenizer, text, size, json_string_value(pair),
                                      json_string_length(pair), SPECIAL_READ);
    check_encoding(tokenizer, &encoding, expected);
    encoding_release(&encoding);
    free(text);
}

static void run_bert(const json_t *input, const json_t *expected, void *user)
{
    run_encoding(user, input, expected);
}

static void test_bert(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_model();
    for_each_case("bert", run_bert, tokenizer);
    tokenizer_close(tokenizer);
}

static void run_word_piece(const json_t *input, const json_t *expected, void *user)
{
    (void)user;
    const json_t *pieces = json_object_get(input, "vocab");
    json_t *vocab = json_object();
    for (size_t i = 0; i < json_array_size(pieces); i++)
        json_object_set_new(vocab, json_string_value(json_array_get(pieces, i)),
                            json_integer((json_int_t)i));
    json_t *description = small_description_with(
        "{\"added_tokens\": [], \"post_processor\": null, \"normalizer\": {\"type\": "
        "\"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true}}");
    json_object_set(json_object_get(description, "normalizer"), "lowercase",
                    json_object_get(input, "lowercase"));
    json_object_set_new(json_object_get(description, "model"), "vocab", vocab);
    struct tokenizer *tokenizer = open_description(description);
    run_encoding(tokenizer, input, expected);
    tokenizer_close(tokenizer);
    json_decref(description);
}

static void test_word_piece(void **state)
{
    (void)state;
    for_each_case("wordpiece", run_word_piece, NULL);
}

static void run_normalize(const json_t *input, const json_t *expected, void *user)
{
    (void)user;
    const json_t *strip = json_object_get(input, "strip_accents");
    bool lowercase = json_is_true(json_object_get(input, "lowercase"));
    const struct bert_normalizer settings = {
        true, true, json_is_null(strip) ? lowercase : json_is_true(strip), lowercase};
    const json_t *text = json_object_get(input, "text");
    struct normalized_text normalized = {0};
    assert_true(bert_normalize(&settings, json_string_value(text), 0, json_string_length(text),
                               &normalized));
    const json_t *normal = json_object_get(expected, "normalized");
    assert_int_equal(normalized.size, json_string_length(normal));
    assert_memory_equal(normalized.bytes, json_string_value(normal), normalized.size);
    normalized_text_release(&normalized);
}

static void test_normalize(void **state)
{
    (void)state;
    for_each_case("normalize", run_normalize, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bert),
        cmocka_unit_test(test_word_piece),
        cmocka_unit_test(test_normalize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
