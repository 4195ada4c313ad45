/* vocab.txt, where there is no tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "scratch_folder.h"
#include "tokenizer_test.h"

static const char small[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nThe\n\ncafe\ncaf\xC3\xA9\n"
                            "\xE4\xB8\xAD\n##\xE4\xB8\xAD\n##s\n";

static bool try_files(const char *vocabulary, size_t size, const char *config,
                      struct tokenizer **tokenizer, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    scratch_write(folder, "vocab.txt", vocabulary, size);
    if (config)
        scratch_write_text(folder, "tokenizer_config.json", config);
    bool done = tokenizer_open(tokenizer, folder, error);
    scratch_folder_remove(folder);
    return done;
}

static struct tokenizer *open_files(const char *vocabulary, const char *config)
{
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!try_files(vocabulary, strlen(vocabulary), config, &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static void assert_refused(const char *vocabulary, size_t size, const char *config,
                           const char *words)
{
    struct tokenizer *tokenizer;
    struct attn_error error = {""};
    assert_false(try_files(vocabulary, size, config, &tokenizer, &error));
    assert_null(tokenizer);
    assert_message(&error, words);
}

static void test_defaults(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_files(small, NULL);
    assert_pieces(tokenizer, "The caf\xC3\xA9s [MASK]", "[CLS] the cafe ##s [MASK] [SEP]");
    assert_pieces(tokenizer, "\xE4\xB8\xAD\xE4\xB8\xAD", "[CLS] \xE4\xB8\xAD \xE4\xB8\xAD [SEP]");
    assert_pair_pieces(tokenizer, "the", "cafe", SPECIAL_READ, "[CLS] the [SEP] cafe [SEP]");
    assert_int_equal(tokenizer_size(tokenizer), 13);
    assert_null(tokenizer_piece(tokenizer, 7)); /* the empty line */
    assert_string_equal(tokenizer_piece(tokenizer, 8), "cafe");
    tokenizer_close(tokenizer);
}

static void test_config(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_files(small, "{\"do_lower_case\": false}");
    assert_pieces(tokenizer, "The caf\xC3\xA9", "[CLS] The caf\xC3\xA9 [SEP]");
    tokenizer_close(tokenizer);
    tokenizer = open_files(small, "{\"do_lower_case\": false, \"strip_accents\": true}");
    assert_pieces(tokenizer, "The caf\xC3\xA9", "[CLS] The cafe [SEP]");
    tokenizer_close(tokenizer);
    tokenizer = open_files(small, "{\"strip_accents\": false}");
    assert_pieces(tokenizer, "The caf\xC3\xA9", "[CLS] the caf\xC3\xA9 [SEP]");
    tokenizer_close(tokenizer);
    tokenizer = open_files(small, "{\"strip_accents\": null, \"tokenize_chinese_chars\": false}");
    assert_pieces(tokenizer, "Caf\xC3\xA9 \xE4\xB8\xAD\xE4\xB8\xAD",
                  "[CLS] cafe \xE4\xB8\xAD ##\xE4\xB8\xAD [SEP]");
    tokenizer_close(tokenizer);
}

static void test_line_ends(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_files("[UNK]\r\n[CLS]\r\n[SEP]\r\nthe", NULL);
    assert_pieces(tokenizer, "the [MASK]", "[CLS] the [UNK] [UNK] [UNK] [SEP]");
    assert_int_equal(tokenizer_size(tokenizer), 4);
    tokenizer_close(tokenizer);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("", 0, NULL, "vocab.txt has no line [UNK]");
    assert_refused("[UNK]\n[SEP]\n", 12, NULL, "vocab.txt has no line [CLS]");
    assert_refused("[UNK]\n[CLS]\n", 12, NULL, "vocab.txt has no line [SEP]");
    assert_refused("[UNK]\n[CLS]\n[UNK]\n", 18, NULL, "vocab.txt: line 3 repeats line 1");
    assert_refused("[UNK]\na\0b\n", 10, NULL, "vocab.txt: line 2 is not UTF-8 text");
    assert_refused("[UNK]\n[CLS]\n\xC3\n", 14, NULL, "vocab.txt: line 3 is not UTF-8 text");
    assert_refused(small, strlen(small), "{\"do_lower_case\": 1}",
                   "tokenizer_config.json has another kind of do_lower_case");
    assert_refused(small, strlen(small), "{", "tokenizer_config.json");
}

/* The model's two files say the same. */
static void test_same_as_json(void **state)
{
    (void)state;
    struct tokenizer *from_json = open_model();
    char *path = attn_path_join(getenv("ATTN_TEST_MODEL"), "vocab.txt");
    char *vocabulary;
    size_t size;
    struct attn_error error;
    if (!attn_file_read(path, 1 << 24, &vocabulary, &size, &error))
        fail_msg("%s", error.message);
    struct tokenizer *from_lines = open_files(vocabulary, NULL);
    assert_int_equal(tokenizer_size(from_lines), tokenizer_size(from_json));
    for (int32_t id = 0; id < tokenizer_size(from_json); id++)
        assert_string_equal(tokenizer_piece(from_lines, id), tokenizer_piece(from_json, id));

    static const char text[] = "The naïve robot's [MASK] — 東京, unbelievable!", pair[] = "Ünïcödé";
    struct encoding a = encode(from_json, text, strlen(text), pair, strlen(pair), SPECIAL_READ);
    struct encoding b = encode(from_lines, text, strlen(text), pair, strlen(pair), SPECIAL_READ);
    assert_int_equal(a.token_count, b.token_count);
    for (size_t i = 0; i < a.token_count; i++) {
        assert_int_equal(a.tokens[i].id, b.tokens[i].id);
        assert_int_equal(a.tokens[i].type, b.tokens[i].type);
        assert_int_equal(a.tokens[i].begin, b.tokens[i].begin);
    }
    encoding_release(&a);
    encoding_release(&b);
    free(vocabulary);
    free(path);
    tokenizer_close(from_json);
    tokenizer_close(from_lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_config),
        cmocka_unit_test(test_line_ends),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_same_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
