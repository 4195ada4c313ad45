/* Cutting words into pieces, and the vocabulary below. */
#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"
#include "tokenizer_test.h"

/* A word of `count` times `letter`, between two others: `tokens` tokens in all, the unknown token
 * where it is too long. */
static void check_long_word(const struct tokenizer *tokenizer, const char *letter, size_t count,
                            bool known)
{
    size_t length = strlen(letter);
    char *text = malloc(4 + count * length + 1);
    assert_non_null(text);
    memcpy(text, "b ", 2);
    for (size_t i = 0; i < count; i++)
        memcpy(text + 2 + i * length, letter, length);
    memcpy(text + 2 + count * length, " b", 3);
    struct encoding encoding = encode(tokenizer, text, strlen(text), NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, known ? count + 4 : 5);
    assert_int_equal(encoding.word_count, 3);
    const char *second = tokenizer_piece(tokenizer, encoding.tokens[2].id);
    assert_string_equal(second, known ? letter : "[UNK]");
    encoding_release(&encoding);
    free(text);
}

static void test_limit_counts_characters(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    check_long_word(tokenizer, "b", 99, true);
    check_long_word(tokenizer, "b", 100, true);
    check_long_word(tokenizer, "b", 101, false);
    check_long_word(tokenizer, "\xD0\xB6", 100, true); /* ж */
    check_long_word(tokenizer, "\xD0\xB6", 101, false);
    tokenizer_close(tokenizer);
}

static void test_limit_counts_after_normalizing(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    char text[300];
    for (size_t i = 0; i < 100; i++)
        memcpy(text + 3 * i, "e\xCC\x81", 3); /* 200 characters, 100 of which stay */
    struct encoding encoding = encode(tokenizer, text, sizeof text, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 102);
    assert_int_equal(encoding.tokens[100].begin, 297);
    assert_int_equal(encoding.tokens[100].end, 298); /* the mark that was dropped is not its own */
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_a_megabyte_word(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    struct tokenizer *tokenizer = open_small(NULL);
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'a', SIZE);
    struct encoding encoding = encode(tokenizer, text, SIZE, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 3);
    assert_int_equal(encoding.tokens[1].end, SIZE);
    encoding_release(&encoding);

    json_t *description = small_description(NULL);
    json_object_set_new(json_object_get(description, "model"), "max_input_chars_per_word",
                        json_integer(INT64_MAX));
    struct tokenizer *unlimited = open_description(description);
    encoding = encode(unlimited, text, SIZE, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, SIZE + 2);
    encoding_release(&encoding);
    json_decref(description);
    free(text);
    tokenizer_close(unlimited);
    tokenizer_close(tokenizer);
}

static void test_unknown_words(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_pieces(tokenizer, "replaying", "[CLS] re ##play ##ing [SEP]");
    assert_pieces(tokenizer,
                  "replaying\xE2\x82\xAC"
                  "a",
                  "[CLS] [UNK] [SEP]");
    assert_pieces(tokenizer, "play \xF0\x9F\x92\xA9\xF0\x9F\x92\xA9 rain",
                  "[CLS] play [UNK] rain [SEP]");
    assert_pieces(tokenizer, "\xE2\x82\xAC", "[CLS] \xE2\x82\xAC [SEP]");
    assert_pieces(tokenizer, "##ing", "[CLS] # # i ##n ##g [SEP]");
    tokenizer_close(tokenizer);
}

/* A word with NUL in it, which cleaning would have removed, is no shorter word. */
static void test_nul_in_a_word(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small("{\"normalizer\": null}");
    struct encoding encoding = encode(tokenizer, "play\0ed", 7, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 3);
    assert_string_equal(tokenizer_piece(tokenizer, encoding.tokens[1].id), "[UNK]");
    assert_int_equal(encoding.tokens[1].end, 7);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_vocabulary(void **state)
{
    (void)state;
    struct vocabulary vocabulary;
    size_t length = 0;
    assert_true(vocabulary_create(&vocabulary, 10, 4, 12, NULL));
    assert_true(vocabulary_add(&vocabulary, 7, "ab", 2, VOCABULARY_FOUND));
    assert_true(vocabulary_add(&vocabulary, 0, "##abc", 5, VOCABULARY_FOUND));
    assert_true(vocabulary_add(&vocabulary, 3, "##a", 3, VOCABULARY_FOUND));
    assert_true(vocabulary_add(&vocabulary, 9, "zz", 2, VOCABULARY_NAMED));
    assert_false(vocabulary_add(&vocabulary, 7, "c", 1, VOCABULARY_FOUND));
    assert_false(vocabulary_add(&vocabulary, 5, "ab", 2, VOCABULARY_FOUND));

    assert_int_equal(vocabulary_find(&vocabulary, "ab", 2), 7);
    assert_int_equal(vocabulary_find(&vocabulary, "abc", 3), VOCABULARY_NO_ID);
    assert_int_equal(vocabulary_find(&vocabulary, "zz", 2), VOCABULARY_NO_ID);
    assert_string_equal(vocabulary_spelling(&vocabulary, 9), "zz");
    assert_null(vocabulary_spelling(&vocabulary, 5));
    assert_null(vocabulary_spelling(&vocabulary, -1));
    assert_null(vocabulary_spelling(&vocabulary, 10));

    assert_int_equal(vocabulary_longest(&vocabulary, "##", 2, "abd", 3, &length), 3);
    assert_int_equal(length, 1);
    assert_int_equal(vocabulary_longest(&vocabulary, "##", 2, "abcd", 4, &length), 0);
    assert_int_equal(length, 3);
    assert_int_equal(vocabulary_longest(&vocabulary, "##", 2, "abc", 2, &length), 3);
    assert_int_equal(vocabulary_longest(&vocabulary, "", 0, "b", 1, &length), VOCABULARY_NO_ID);
    assert_int_equal(vocabulary_longest(&vocabulary, "######", 6, "a", 1, &length),
                     VOCABULARY_NO_ID);
    vocabulary_release(&vocabulary);
}

static void test_empty_vocabulary(void **state)
{
    (void)state;
    struct vocabulary vocabulary;
    size_t length;
    assert_true(vocabulary_create(&vocabulary, 0, 0, 0, NULL));
    assert_int_equal(vocabulary_find(&vocabulary, "a", 1), VOCABULARY_NO_ID);
    assert_int_equal(vocabulary_longest(&vocabulary, "", 0, "a", 1, &length), VOCABULARY_NO_ID);
    assert_null(vocabulary_spelling(&vocabulary, 0));
    vocabulary_release(&vocabulary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_counts_characters),
        cmocka_unit_test(test_limit_counts_after_normalizing),
        cmocka_unit_test(test_a_megabyte_word),
        cmocka_unit_test(test_unknown_words),
        cmocka_unit_test(test_nul_in_a_word),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_empty_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
