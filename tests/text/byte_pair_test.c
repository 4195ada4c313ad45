/* Byte-level BPE through the door: what goes in comes out, in time that does not explode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch_folder.h"
#include "text/unicode.h"
#include "tokenizer_test.h"

/* A linear congruential generator (D. E. Knuth, MMIX): the same texts on any machine. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

static uint32_t random_code_point(uint64_t *state)
{
    static const uint32_t limits[] = {0x80, 0x80, 0x800, 0x10000, 0x110000};
    uint32_t code_point = draw(state, limits[draw(state, 5)]);
    return code_point >= 0xD800 && code_point < 0xE000 ? ' ' : code_point;
}

static void assert_comes_back(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct encoding encoding = encode(tokenizer, text, size, NULL, 0, SPECIAL_PLAIN);
    int32_t *ids = malloc((encoding.token_count + 1) * sizeof *ids);
    struct attn_buffer decoded = {0};
    struct attn_error error;
    assert_non_null(ids);
    for (size_t i = 0; i < encoding.token_count; i++)
        ids[i] = encoding.tokens[i].id;
    assert_true(tokenizer_decode(tokenizer, ids, encoding.token_count, &decoded, &error));
    assert_int_equal(decoded.size, size);
    if (size > 0)
        assert_memory_equal(decoded.data, text, size);
    attn_buffer_release(&decoded);
    encoding_release(&encoding);
    free(ids);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    uint64_t seed = 5;
    char text[400 * UTF8_LIMIT];
    for (int i = 0; i < 500; i++) {
        size_t size = 0;
        for (uint32_t left = draw(&seed, 400); left > 0; left--)
            size += (size_t)utf8_encode(random_code_point(&seed), text + size);
        assert_comes_back(tokenizer, text, size);
    }
    assert_comes_back(tokenizer, "hello !", 7);
    assert_comes_back(tokenizer, "a , b", 5);
    assert_comes_back(tokenizer, "", 0);
    tokenizer_close(tokenizer);
}

/* Words and tokens of one text share its bytes out, whatever the text. */
static void test_places(void **state)
{
    (void)state;
    static const char text[] = "So it's \u4E2D\u0416 \U0001F469!  <|endoftext|>\n\n x ";
    struct tokenizer *tokenizer = open_bytes(NULL);
    struct encoding encoding = encode(tokenizer, text, sizeof text - 1, NULL, 0, SPECIAL_READ);
    size_t done = 0;
    for (size_t i = 0; i < encoding.word_count; i++) {
        assert_int_equal(encoding.words[i].begin, done);
        assert_true(encoding.words[i].end > done);
        done = encoding.words[i].end;
    }
    assert_int_equal(done, sizeof text - 1);
    int32_t word = 0;
    for (size_t i = 0; i < encoding.token_count; i++) {
        const struct token *token = &encoding.tokens[i];
        assert_true(token->word == word || token->word == word + 1);
        word = token->word;
        assert_true(token->begin >= encoding.words[word].begin);
        assert_true(token->end <= encoding.words[word].end && token->end > token->begin);
        assert_true(((unsigned char)text[token->begin] & 0xC0) != 0x80);
        assert_true(((unsigned char)text[token->end] & 0xC0) != 0x80);
    }
    assert_int_equal(word + 1, encoding.word_count);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

/* "aa" to a run of 2⁸ letters: each merge doubles what there is. */
static struct tokenizer *open_doubling(void)
{
    json_t *vocab = json_object(), *merges = json_array();
    char spelling[257] = "a";
    json_object_set_new(vocab, "a", json_integer(0));
    json_object_set_new(vocab, "<|endoftext|>", json_integer(9));
    for (int i = 1; i <= 8; i++) {
        char merge[2 * sizeof spelling];
        size_t length = strlen(spelling);
        snprintf(merge, sizeof merge, "%s %s", spelling, spelling);
        json_array_append_new(merges, json_string(merge));
        memset(spelling, 'a', 2 * length);
        json_object_set_new(vocab, spelling, json_integer(i));
    }
    json_t *description = bytes_description_with(
        "{\"added_tokens\": [], \"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}}");
    json_object_set_new(json_object_get(description, "model"), "vocab", vocab);
    json_object_set_new(json_object_get(description, "model"), "merges", merges);
    struct tokenizer *tokenizer = open_description(description);
    json_decref(description);
    return tokenizer;
}

/* A word of a million letters: an algorithm that looks at each pair again for each merge would take
 * an hour. */
static void test_long_word(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_doubling();
    size_t size = ((size_t)1 << 20) + 129;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, 'a', size);
    struct encoding encoding = encode(tokenizer, text, size, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, (1 << 12) + 2);
    for (size_t i = 0; i < 1 << 12; i++)
        assert_int_equal(encoding.tokens[i].id, 8);
    assert_int_equal(encoding.tokens[1 << 12].id, 7);
    assert_int_equal(encoding.tokens[(1 << 12) + 1].id, 0);
    encoding_release(&encoding);
    free(text);
    tokenizer_close(tokenizer);
}

/* As in the reference: the bytes that the vocabulary lacks are left out. */
static void test_missing_byte(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_doubling();
    struct encoding encoding = encode(tokenizer, "ab\na ", 5, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.token_count, 2);
    assert_int_equal(encoding.word_count, 2); /* "\n" has no token, and so no word */
    assert_int_equal(encoding.tokens[1].begin, 3);
    assert_int_equal(encoding.tokens[1].end, 4);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
}

static void test_what_is_asked(void **state)
{
    (void)state;
    struct tokenizer *bytes = open_bytes(NULL), *small = open_small(NULL);
    assert_int_equal(tokenizer_get_kind(bytes), TOKENIZER_BYTE_PAIR);
    assert_int_equal(tokenizer_get_kind(small), TOKENIZER_WORD_PIECE);
    assert_int_equal(tokenizer_size(bytes), 420);
    int32_t end = tokenizer_special(bytes, "<|endoftext|>");
    assert_string_equal(tokenizer_piece(bytes, end), "<|endoftext|>");
    assert_string_equal(tokenizer_piece(small, tokenizer_special(small, "[MASK]")), "[MASK]");
    assert_int_equal(tokenizer_special(bytes, "[MASK]"), -1);
    assert_int_equal(tokenizer_special(bytes, "a"), -1); /* a piece, and not an added token */
    tokenizer_close(bytes);
    tokenizer_close(small);
}

static void test_refused_text(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    const struct tokenizer_input input = {"ok \xC3(", 5, NULL, 0, SPECIAL_READ};
    struct encoding encoding;
    struct attn_error error = {""};
    assert_false(tokenizer_encode(tokenizer, &input, &encoding, &error));
    assert_message(&error, "byte 3 is 0xc3");
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_long_word),     cmocka_unit_test(test_missing_byte),
        cmocka_unit_test(test_what_is_asked), cmocka_unit_test(test_refused_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
