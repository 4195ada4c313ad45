/* Ids back to text. */
#include <string.h>

#include "tokenizer_test.h"

static void assert_decodes(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                           const char *expected)
{
    struct attn_buffer text = {0};
    struct attn_error error;
    attn_buffer_add_text(&text, ">");
    assert_true(tokenizer_decode(tokenizer, ids, count, &text, &error));
    assert_int_equal(text.data[0], '>'); /* what was there stays */
    assert_string_equal(text.data + 1, expected);
    attn_buffer_release(&text);
}

/* Encodes a text and decodes its ids. */
static void assert_becomes(const struct tokenizer *tokenizer, const char *text,
                           const char *expected)
{
    struct encoding encoding = encode(tokenizer, text, strlen(text), NULL, 0, SPECIAL_READ);
    int32_t ids[64];
    assert_true(encoding.token_count <= 64);
    for (size_t i = 0; i < encoding.token_count; i++)
        ids[i] = encoding.tokens[i].id;
    assert_decodes(tokenizer, ids, encoding.token_count, expected);
    encoding_release(&encoding);
}

static void test_bytes(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    assert_becomes(tokenizer, "", "");
    assert_becomes(tokenizer, "It's  na\u00EFve\n\u4E2D!", "It's  na\u00EFve\n\u4E2D!");
    assert_becomes(tokenizer, "a<|endoftext|> b", "a b"); /* special tokens are left out */
    tokenizer_close(tokenizer);
}

/* Tokens that end inside a character give its bytes one after the other. */
static void test_cut_characters(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    struct encoding encoding = encode(tokenizer, "\U0010FFFF", 4, NULL, 0, SPECIAL_READ);
    assert_true(encoding.token_count > 1);
    struct attn_buffer text = {0};
    struct attn_error error;
    for (size_t i = 0; i < encoding.token_count; i++) {
        assert_true(tokenizer_decode(tokenizer, &encoding.tokens[i].id, 1, &text, &error));
        assert_memory_equal(text.data, "\U0010FFFF", text.size);
    }
    assert_int_equal(text.size, 4);
    attn_buffer_release(&text);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

/* An added token that is not special stands for its own letters, even those that would spell
 * bytes. */
static void test_added_tokens(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(
        "{\"added_tokens\": [{\"id\": 420, \"content\": \"\u00E9t\u00E9\", \"special\": false, "
        "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": true}]}");
    assert_becomes(tokenizer, "un \u00E9t\u00E9 !", "un \u00E9t\u00E9 !");
    tokenizer_close(tokenizer);
}

static void test_word_piece(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    assert_becomes(tokenizer, "The robot played, [MASK] rain", "the robot played , rain");
    assert_becomes(tokenizer, "replay", "replay");
    assert_becomes(tokenizer, "", "");
    tokenizer_close(tokenizer);
}

static void test_refused_ids(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    static const int32_t wrong[] = {420, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const int32_t ids[] = {1, wrong[i]};
        struct attn_buffer text = {0};
        struct attn_error error = {""};
        assert_false(tokenizer_decode(tokenizer, ids, 2, &text, &error));
        assert_message(&error, "token 1 has the id ");
        assert_int_equal(text.size, 0);
        attn_buffer_release(&text);
    }
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_cut_characters),
        cmocka_unit_test(test_added_tokens), cmocka_unit_test(test_word_piece),
        cmocka_unit_test(test_refused_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
