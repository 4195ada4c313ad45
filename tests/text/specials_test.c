/* Special tokens in a text, added tokens, pairs, empty and invalid texts. */
#include <string.h>

#include "tokenizer_test.h"

static void test_in_the_text(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_pieces(tokenizer, "[MASK]", "[CLS] [MASK] [SEP]");
    assert_pieces(tokenizer, "[MASK] the", "[CLS] [MASK] the [SEP]");
    assert_pieces(tokenizer, "the [MASK]", "[CLS] the [MASK] [SEP]");
    assert_pieces(tokenizer, "[CLS][MASK][SEP]", "[CLS] [CLS] [MASK] [SEP] [SEP]");
    assert_pieces(tokenizer, "re[MASK]play", "[CLS] re [MASK] play [SEP]");
    assert_pieces(tokenizer, "[mask]", "[CLS] [ m ##a ##s ##k ] [SEP]");
    assert_pieces(tokenizer, "[[MASK]]", "[CLS] [ [MASK] ] [SEP]");
    assert_pieces(tokenizer, "[MASK", "[CLS] [ m ##a ##s ##k [SEP]");
    /* What cleaning takes out joins nothing to a special token. */
    assert_pieces(tokenizer, "[MA\xC2\xADSK]", "[CLS] [ m ##a ##s ##k ] [SEP]");
    tokenizer_close(tokenizer);
}

static void test_words_of_specials(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    struct encoding encoding = encode(tokenizer, "re[MASK]play", 12, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.word_count, 3);
    assert_int_equal(encoding.words[1].begin, 2);
    assert_int_equal(encoding.words[1].end, 8);
    assert_int_equal(encoding.tokens[2].word, 1);
    assert_int_equal(encoding.tokens[2].text, 0);
    assert_int_equal(encoding.tokens[0].word, TOKEN_NO_WORD);
    assert_int_equal(encoding.tokens[0].text, -1);
    assert_int_equal(encoding.tokens[4].word, TOKEN_NO_WORD);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_plain(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_pair_pieces(tokenizer, "[MASK]", NULL, SPECIAL_PLAIN, "[CLS] [ m ##a ##s ##k ] [SEP]");
    tokenizer_close(tokenizer);
    /* An added token that is not special stays one. */
    tokenizer =
        open_small("{\"added_tokens\": [{\"id\": 300, \"content\": \"<x>\", \"special\": false, "
                   "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                   "\"normalized\": false}]}");
    assert_pair_pieces(tokenizer, "<x>", NULL, SPECIAL_PLAIN, "[CLS] <x> [SEP]");
    assert_int_equal(tokenizer_size(tokenizer), 301);
    tokenizer_close(tokenizer);
}

static void test_pairs(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_pair_pieces(tokenizer, "the robot", "rain", SPECIAL_READ,
                       "[CLS] the robot [SEP] rain [SEP]");
    assert_pair_pieces(tokenizer, "", "", SPECIAL_READ, "[CLS] [SEP] [SEP]");
    struct encoding encoding = encode(tokenizer, "the robot", 9, "a rain", 6, SPECIAL_READ);
    static const int32_t types[] = {0, 0, 0, 0, 1, 1, 1}, texts[] = {-1, 0, 0, -1, 1, 1, -1},
                         words[] = {-1, 0, 1, -1, 2, 3, -1};
    assert_int_equal(encoding.token_count, 7);
    assert_int_equal(encoding.word_count, 4);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(encoding.tokens[i].type, types[i]);
        assert_int_equal(encoding.tokens[i].text, texts[i]);
        assert_int_equal(encoding.tokens[i].word, words[i]);
    }
    assert_int_equal(encoding.words[3].text, 1);
    assert_int_equal(encoding.words[3].begin, 2);
    assert_int_equal(encoding.words[3].end, 6);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_empty(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_pieces(tokenizer, "", "[CLS] [SEP]");
    assert_pieces(tokenizer, " \t ", "[CLS] [SEP]");
    assert_pieces(tokenizer, "\xC2\xAD", "[CLS] [SEP]");
    assert_pieces(tokenizer, "\xCC\x81", "[CLS] [SEP]");
    struct encoding encoding = encode(tokenizer, NULL, 0, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 2);
    assert_int_equal(encoding.word_count, 0);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_text_with_nul(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    struct encoding encoding = encode(tokenizer, "the\0 robot\0[MASK]", 17, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 5);
    assert_string_equal(tokenizer_piece(tokenizer, encoding.tokens[2].id), "robot");
    assert_string_equal(tokenizer_piece(tokenizer, encoding.tokens[3].id), "[MASK]");
    assert_int_equal(encoding.words[2].begin, 11);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    struct encoding encoding;
    struct attn_error error;
    struct tokenizer_input input = {.text = "ab\xFFz", .text_size = 4};
    assert_false(tokenizer_encode(tokenizer, &input, &encoding, &error));
    assert_message(&error, "the text is not valid UTF-8: byte 2 is 0xff");
    assert_null(encoding.tokens);
    assert_null(encoding.words);
    input = (struct tokenizer_input){.text = "a", .text_size = 1, .pair = "\xC3", .pair_size = 1};
    assert_false(tokenizer_encode(tokenizer, &input, &encoding, &error));
    assert_message(&error, "the pair is not valid UTF-8: byte 0 is 0xc3");
    tokenizer_close(tokenizer);
}

static void test_huge_text(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    struct encoding encoding;
    struct attn_error error;
    struct tokenizer_input input = {.text = "", .text_size = (size_t)INT32_MAX + 1};
    assert_false(tokenizer_encode(tokenizer, &input, &encoding, &error));
    assert_message(&error, "the text has 2147483648 bytes, expected at most 2147483647");
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_the_text),  cmocka_unit_test(test_words_of_specials),
        cmocka_unit_test(test_plain),        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_text_with_nul),
        cmocka_unit_test(test_invalid_utf8), cmocka_unit_test(test_huge_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
