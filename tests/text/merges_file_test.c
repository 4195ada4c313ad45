/* vocab.json and merges.txt, as GPT-2 was given out. */
#include <stdlib.h>
#include <string.h>

#include "scratch_folder.h"
#include "tokenizer_test.h"

static const char vocabulary[] =
    "{\"a\": 0, \"b\": 1, \"c\": 2, \"\\u0120\": 3, \"ab\": 4, \"abc\": 5, \"\\u0120ab\": 6, "
    "\"bc\": 7, \"<|endoftext|>\": 8}";
static const char merges[] = "#version: 0.2\na b\nab c\n\xC4\xA0 ab\nb c\n";

/* NULL for a file that is not there. */
static bool try_files(const char *vocab, const char *merges_text, const char *config,
                      struct tokenizer **tokenizer, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    if (vocab)
        scratch_write_text(folder, "vocab.json", vocab);
    if (merges_text)
        scratch_write_text(folder, "merges.txt", merges_text);
    if (config)
        scratch_write_text(folder, "tokenizer_config.json", config);
    bool done = tokenizer_open(tokenizer, folder, error);
    scratch_folder_remove(folder);
    return done;
}

static struct tokenizer *open_files(const char *merges_text, const char *config)
{
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!try_files(vocabulary, merges_text, config, &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static void assert_files_refused(const char *vocab, const char *merges_text, const char *config,
                                 const char *words)
{
    struct tokenizer *tokenizer;
    struct attn_error error = {""};
    assert_false(try_files(vocab, merges_text, config, &tokenizer, &error));
    assert_null(tokenizer);
    assert_message(&error, words);
}

static void test_opens(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_files(merges, NULL);
    assert_int_equal(tokenizer_get_kind(tokenizer), TOKENIZER_BYTE_PAIR);
    assert_int_equal(tokenizer_size(tokenizer), 9);
    assert_int_equal(tokenizer_special(tokenizer, "<|endoftext|>"), 8);
    assert_pieces(tokenizer, "abc ab cab", "abc \u0120ab \u0120 c ab");
    assert_pieces(tokenizer, "bc<|endoftext|>ab", "bc <|endoftext|> ab");
    tokenizer_close(tokenizer);
}

/* A line may end as on Windows, the last without an end, and the version may be missing. */
static void test_lines(void **state)
{
    (void)state;
    static const char *const texts[] = {"a b\r\nab c\r\n", "a b\nab c", "\n\na b\n\nab c\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tokenizer *tokenizer = open_files(texts[i], NULL);
        assert_pieces(tokenizer, "abc bc", "abc \u0120 b c");
        tokenizer_close(tokenizer);
    }
    struct tokenizer *tokenizer = open_files("", NULL);
    assert_pieces(tokenizer, "abc", "a b c");
    tokenizer_close(tokenizer);
}

static void test_config(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_files(
        merges, "{\"tokenizer_class\": \"GPT2TokenizerFast\", \"add_prefix_space\": true}");
    assert_pieces(tokenizer, "ab", "\u0120ab");
    assert_pieces(tokenizer, " ab", "\u0120ab");
    tokenizer_close(tokenizer);
    assert_files_refused(vocabulary, merges, "{\"tokenizer_class\": \"RobertaTokenizer\"}",
                         "tokenizer_class RobertaTokenizer is not implemented");
    assert_files_refused(vocabulary, merges, "{\"add_prefix_space\": \"yes\"}",
                         "tokenizer_config.json has another kind of add_prefix_space");
}

static void test_refused(void **state)
{
    (void)state;
    assert_files_refused(NULL, merges, NULL, "nor vocab.json with merges.txt");
    assert_files_refused(vocabulary, NULL, NULL, "merges.txt");
    assert_files_refused("[]", merges, NULL, "vocab.json");
    assert_files_refused("{\"a\": \"b\"}", merges, NULL, "vocab.json: the id of \"a\"");
    assert_files_refused("{\"a\": 0, \"b\": 0}", merges, NULL, "vocab.json: \"b\" has the id 0");
    assert_files_refused(vocabulary, "a b\nab\n", NULL, "merges.txt: line 2 is not a pair");
    assert_files_refused(vocabulary, "a b c\n", NULL, "merges.txt: line 1 is not a pair");
    assert_files_refused(vocabulary, " b\n", NULL, "merges.txt: line 1 is not a pair");
    assert_files_refused(vocabulary, "a b\nb a\n", NULL,
                         "merges.txt: merge 1 needs the piece \"ba\"");
    assert_files_refused(vocabulary, "a \xFF\n", NULL, "merges.txt is not UTF-8 text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
