/* The default generator's tokenizer, read from its GGUF file: handed cases, the reference's ids of
 * many texts, words of a megabyte, its chat template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/model_source.h"
#include "text/chat_template.h"
#include "tokenizer_test.h"

enum { MEGABYTE = 1000000 };

/* Skips the test where there is no such file. */
static struct model_source *open_generator(void)
{
    const char *path = getenv("ATTN_TEST_GENERATOR");
    struct model_source *source;
    struct attn_error error;
    if (!path || !*path)
        skip_because("ATTN_TEST_GENERATOR is not set");
    if (!model_source_open(&source, path, &error))
        fail_msg("%s", error.message);
    return source;
}

static struct tokenizer *open_tokenizer(void)
{
    struct model_source *source = open_generator();
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!model_source_tokenizer(source, &tokenizer, &error))
        fail_msg("%s", error.message);
    model_source_close(source);
    return tokenizer;
}

/* The text that the ids stand for, with special tokens as they are spelled. */
static void spell(const struct tokenizer *tokenizer, const struct encoding *encoding,
                  struct attn_buffer *text)
{
    struct attn_error error;
    for (size_t i = 0; i < encoding->token_count; i++) {
        const int32_t id = encoding->tokens[i].id;
        const char *piece = tokenizer_piece(tokenizer, id);
        if (tokenizer_special(tokenizer, piece) == id)
            attn_buffer_add_text(text, piece);
        else
            assert_true(tokenizer_decode(tokenizer, &id, 1, text, &error));
    }
    assert_false(text->failed);
}

static void assert_spelled(const struct tokenizer *tokenizer, const struct encoding *encoding,
                           const char *expected, size_t size)
{
    struct attn_buffer text = {0};
    spell(tokenizer, encoding, &text);
    assert_int_equal(text.size, size);
    if (size > 0)
        assert_memory_equal(text.data, expected, size);
    attn_buffer_release(&text);
}

static void assert_ids(const struct encoding *encoding, size_t first, const json_t *ids)
{
    assert_true(first + json_array_size(ids) <= encoding->token_count);
    for (size_t i = 0; i < json_array_size(ids); i++)
        assert_int_equal(encoding->tokens[first + i].id,
                         json_integer_value(json_array_get(ids, i)));
}

/* Of a huge text the case has the first ids, the last ones, and the sum of all. */
static void check_huge(const struct encoding *encoding, const json_t *expected)
{
    const json_t *last = json_object_get(expected, "last");
    json_int_t sum = 0;
    for (size_t i = 0; i < encoding->token_count; i++)
        sum += encoding->tokens[i].id;
    assert_int_equal(encoding->token_count, json_integer_value(json_object_get(expected, "count")));
    assert_ids(encoding, 0, json_object_get(expected, "first"));
    assert_ids(encoding, encoding->token_count - json_array_size(last), last);
    assert_int_equal(sum, json_integer_value(json_object_get(expected, "sum")));
}

static void run_case(const json_t *input, const json_t *expected, void *user)
{
    const struct tokenizer *tokenizer = user;
    const json_t *text_json = json_object_get(input, "text"),
                 *decoded = json_object_get(expected, "decoded"),
                 *ids = json_object_get(expected, "ids");
    size_t size;
    char *text = expand_text(text_json ? text_json : input, &size);
    bool is_plain = json_is_false(json_object_get(input, "special_tokens"));
    struct encoding encoding =
        encode(tokenizer, text, size, NULL, 0, is_plain ? SPECIAL_PLAIN : SPECIAL_READ);
    if (ids) {
        assert_int_equal(encoding.token_count, json_array_size(ids));
        assert_ids(&encoding, 0, ids);
    } else {
        check_huge(&encoding, expected);
    }
    if (decoded)
        assert_spelled(tokenizer, &encoding, json_string_value(decoded),
                       json_string_length(decoded));
    else
        assert_spelled(tokenizer, &encoding, text, size);
    encoding_release(&encoding);
    free(text);
}

static void test_handed_cases(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_tokenizer();
    for_each_case("bpe", run_case, tokenizer);
    tokenizer_close(tokenizer);
}

/* A text comes back whole but for the bytes that no id stands for. */
static void check_answer(const struct tokenizer *tokenizer, const json_t *answer)
{
    const json_t *text = json_object_get(answer, "text"), *ids = json_object_get(answer, "ids"),
                 *dropped = json_object_get(answer, "dropped");
    bool is_plain = json_is_true(json_object_get(answer, "plain"));
    size_t size = json_string_length(text), lacking = json_array_size(dropped);
    struct encoding encoding = encode(tokenizer, json_string_value(text), size, NULL, 0,
                                      is_plain ? SPECIAL_PLAIN : SPECIAL_READ);
    assert_int_equal(encoding.token_count, json_array_size(ids));
    assert_ids(&encoding, 0, ids);
    assert_int_equal(encoding.dropped_count, lacking);
    if (lacking > 0)
        assert_int_equal(encoding.first_dropped, json_integer_value(json_array_get(dropped, 0)));
    else
        assert_spelled(tokenizer, &encoding, json_string_value(text), size);
    encoding_release(&encoding);
}

static void test_golden(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_tokenizer();
    json_t *answers = test_data_json("golden/tokenizer_generator.json");
    assert_int_equal(json_array_size(answers), 300);
    for (size_t i = 0; i < json_array_size(answers); i++) {
        print_message("# text %zu\n", i);
        check_answer(tokenizer, json_array_get(answers, i));
    }
    json_decref(answers);
    tokenizer_close(tokenizer);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds that encoding and decoding a repeated piece take. */
static double time_repeated(const struct tokenizer *tokenizer, const char *piece, size_t size)
{
    struct attn_buffer text = {0};
    while (text.size < size)
        attn_buffer_add_text(&text, piece);
    assert_false(text.failed);
    double begin = processor_seconds();
    struct encoding encoding = encode(tokenizer, text.data, text.size, NULL, 0, SPECIAL_READ);
    double seconds = processor_seconds() - begin;
    assert_spelled(tokenizer, &encoding, text.data, text.size);
    encoding_release(&encoding);
    attn_buffer_release(&text);
    return seconds;
}

/* A megabyte takes eight times as long as an eighth of it, and a little more: a search of all pairs
 * behind each merge would take 64 times as long. */
static void test_huge_words(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", " ", "7", "ab", "\U0001F600", "_", "\n", "' "};
    struct tokenizer *tokenizer = open_tokenizer();
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        double part = time_repeated(tokenizer, pieces[i], MEGABYTE / 8);
        double whole = time_repeated(tokenizer, pieces[i], MEGABYTE);
        print_message("# piece %zu: %.3f s, an eighth %.3f s\n", i, whole, part);
        assert_true(whole < 30 * part + 0.05);
    }
    tokenizer_close(tokenizer);
}

/* Its own template, and its own system text where the conversation has none. */
static void test_chat(void **state)
{
    (void)state;
    struct model_source *source = open_generator();
    struct tokenizer *tokenizer = open_tokenizer();
    struct model_manners manners;
    struct chat_template *chat;
    struct chat_tokens tokens = {0};
    struct attn_error error;
    static const char expected[] =
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
        "Face<|im_end|>\n<|im_start|>user\nWhat is <b>?<|im_end|>\n<|im_start|>assistant\n";
    assert_true(model_source_manners(source, &manners, &error));
    if (!chat_template_open(&chat, manners.chat_template, manners.chat_template_size, &error))
        fail_msg("%s", error.message);
    assert_true(chat_template_add(chat, tokenizer, CHAT_USER, "What is <b>?", 12, &tokens, &error));
    assert_true(chat_template_ask(chat, tokenizer, &tokens, &error));
    struct encoding encoding =
        encode(tokenizer, expected, sizeof expected - 1, NULL, 0, SPECIAL_READ);
    assert_int_equal(tokens.count, encoding.token_count);
    for (size_t i = 0; i < tokens.count; i++)
        assert_int_equal(tokens.ids[i], encoding.tokens[i].id);
    assert_int_equal(chat_template_end_id(chat, tokenizer), 2);
    encoding_release(&encoding);
    chat_tokens_release(&tokens);
    chat_template_close(chat);
    model_manners_release(&manners);
    tokenizer_close(tokenizer);
    model_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_huge_words),
        cmocka_unit_test(test_chat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
