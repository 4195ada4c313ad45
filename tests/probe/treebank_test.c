#include "probe/treebank.h"

#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "test_data.h"

#define REST "\t_\t_\n"

static struct treebank read_small(void)
{
    char *path = test_data_path("treebank/small.conllu");
    struct treebank treebank;
    struct attn_error error;
    if (!treebank_read(&treebank, path, &error))
        fail_msg("%s", error.message);
    free(path);
    return treebank;
}

static void test_small(void **state)
{
    (void)state;
    const struct treebank_word words[] = {
        {"The", "det", 2},  {"dog", "nsubj", 3},  {"barks", "root", 0}, {".", "punct", 3},
        {"Do", "aux", 3},   {"n't", "advmod", 3}, {"run", "root", 0},   {"She", "nsubj", 2},
        {"saw", "root", 0}, {"the", "det", 5},    {"old", "amod", 5},   {"dog", "obj", 2},
        {"It", "nsubj", 3}, {"was", "aux", 3},    {"seen", "root", 0},  {"Yes", "root", 0},
    };
    const struct treebank_sentence sentences[] = {
        {0, 4, 3}, {4, 3, 11}, {7, 5, 18}, {12, 3, 26}, {15, 1, 32}};
    const char *const texts[] = {"The dog barks .", "Do n't run", "She saw the old dog",
                                 "It was seen", "Yes"};
    struct treebank treebank = read_small();
    assert_int_equal(treebank.word_count, 16);
    assert_int_equal(treebank.sentence_count, 5);
    for (size_t n = 0; n < 16; n++) {
        assert_string_equal(treebank.words[n].form, words[n].form);
        assert_string_equal(treebank.words[n].relation, words[n].relation);
        assert_int_equal(treebank.words[n].head, words[n].head);
    }
    for (size_t n = 0; n < 5; n++) {
        assert_int_equal(treebank.sentences[n].first, sentences[n].first);
        assert_int_equal(treebank.sentences[n].count, sentences[n].count);
        assert_int_equal(treebank.sentences[n].line, sentences[n].line);
        struct attn_buffer text = {0};
        treebank_add_text(&treebank, &treebank.sentences[n], &text);
        assert_string_equal(text.data, texts[n]);
        attn_buffer_release(&text);
    }
    treebank_release(&treebank);
}

static bool read_bytes(struct treebank *treebank, const char *bytes, size_t size,
                       struct attn_error *error)
{
    char *folder = scratch_folder_create();
    scratch_write(folder, "a.conllu", bytes, size);
    char path[4096];
    snprintf(path, sizeof path, "%s/a.conllu", folder);
    bool done = treebank_read(treebank, path, error);
    scratch_folder_remove(folder);
    return done;
}

static bool read_text(struct treebank *treebank, const char *text, struct attn_error *error)
{
    return read_bytes(treebank, text, strlen(text), error);
}

#define ONE(id, form, head, relation) id "\t" form "\t_\t_\t_\t_\t" head "\t" relation REST

/* Two sentences, however the lines end and whatever stands around them. */
static void test_forms_of_files(void **state)
{
    (void)state;
    const char *const texts[] = {
        ONE("1", "a", "2", "x:y")
            ONE("2", "b c", "0", "root") "\n" ONE("1", "\xc3\xa9", "0", "root") "\n",
        ONE("1", "a", "2", "x") ONE("2", "b c", "0", "root") "\n" ONE("1", "\xc3\xa9", "0", "root"),
        ONE("1", "a", "2", "x")
            ONE("2", "b c", "0", "root") "\n"
                                         "1\t\xc3\xa9\t_\t_\t_\t_\t0\troot\t_\t_",
        "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\r\n2\tb c\t_\t_\t_\t_\t0\troot\t_\t_\r\n\r\n1\t\xc3\xa9\t_\t_\t_\t_\t0\troot\t_\t_\r",
        "\xef\xbb\xbf" ONE("1", "a", "2", "x") ONE("2", "b c", "0", "root") "\n\n\n# c\n\n#\n" ONE(
            "1", "\xc3\xa9", "0", "root") "\n# at the end",
        "0.1\tz\t_\t_\t_\t_\t_\t_\t_\t_\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" ONE(
            "1", "a", "2",
            "x") "1.1\tz\t_\t_\t_\t_\t_\t_\t_\t_\n1.2\tz\t_\t_\t_\t_\t_\t_\t_\t_\n" ONE("2", "b c",
                                                                                        "0",
                                                                                        "root") "\n" ONE("01",
                                                                                                         "\xc3\xa9",
                                                                                                         "0",
                                                                                                         "root"),
    };
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++) {
        struct treebank treebank;
        struct attn_error error;
        if (!read_text(&treebank, texts[n], &error))
            fail_msg("%zu: %s", n, error.message);
        assert_int_equal(treebank.sentence_count, 2);
        assert_int_equal(treebank.word_count, 3);
        assert_string_equal(treebank.words[0].relation, "x");
        assert_string_equal(treebank.words[1].form, "b c");
        assert_string_equal(treebank.words[2].form, "\xc3\xa9");
        assert_int_equal(treebank.words[0].head, 2);
        assert_string_equal(treebank.words[2].relation, "root");
        treebank_release(&treebank);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"", "has no sentence"},
        {"\n# only a comment\n\n", "has no sentence"},
        {"0.1\tz\t_\t_\t_\t_\t_\t_\t_\t_\n", "has no sentence"},
        {"1\ta\t_\t_\t_\t_\t0\troot\t_\n",
         "line 1: a word of CoNLL-U has 10 columns with tabs between them, this line has 9"},
        {ONE("1", "a", "0", "root") "2 b _ _ _ _ 1 x _ _\n", "this line has 1"},
        {"1\ta\t_\t_\t_\t_\t0\troot\t_\t_\t_\n", "this line has 11"},
        {ONE("1", "a", "0", "root") "\n \n", "line 3: a word of CoNLL-U has 10 columns"},
        {ONE("2", "a", "0", "root"), "line 1: the word's number is '2', expected 1"},
        {"# c\r\n" ONE("1", "a", "0", "root") ONE("1", "b", "1", "x"),
         "line 3: the word's number is '1', expected 2"},
        {ONE("1", "a", "0", "root") ONE("3", "b", "1", "x"),
         "line 2: the word's number is '3', expected 2"},
        {ONE("", "a", "0", "root"), "the word's number is ''"},
        {ONE("0", "a", "0", "root"), "the word's number is '0'"},
        {ONE("-1", "a", "0", "root"), "the word's number is '-1'"},
        {ONE("1x", "a", "0", "root"), "the word's number is '1x'"},
        {ONE("2147483648", "a", "0", "root"), "the word's number is '2147483648'"},
        {ONE("18446744073709551617", "a", "0", "root"),
         "the word's number is '18446744073709551617'"},
        {ONE("1-", "a", "_", "_"), "the word's number is '1-'"},
        {ONE("1-1", "a", "_", "_"), "the word's number is '1-1'"},
        {ONE("1-18446744073709551618", "a", "_", "_"),
         "the word's number is '1-18446744073709551618'"},
        {ONE("1.1", "a", "_", "_"), "the word's number is '1.1'"},
        {ONE("1", "a", "0", "root") ONE("1.", "a", "_", "_"), "line 2: the word's number is '1.'"},
        {ONE("1-3", "ab", "_", "_") ONE("1", "a", "2", "x") ONE("2", "b", "0", "root"),
         "line 1: word 3 is named, but the sentence has 2"},
        {ONE("1", "a", "3", "x") ONE("2", "b", "0", "root") "\n" ONE("1", "a", "0", "root"),
         "line 1: word 3 is named, but the sentence has 2"},
        {ONE("1", "a", "2147483647", "x"), "line 1: word 2147483647 is named"},
        {ONE("1", "a", "2147483648", "x"), "line 1: the head is '2147483648', but must be"},
        {ONE("1", "a", "18446744073709551618", "x"), "the head is '18446744073709551618'"},
        {ONE("1", "a", "_", "x"), "line 1: the head is '_'"},
        {ONE("1", "a", "", "x"), "line 1: the head is ''"},
        {ONE("1", "a", "-1", "x"), "line 1: the head is '-1'"},
        {ONE("1", "a", "1", "x"), "line 1: word 1 is its own head"},
        {ONE("1", "", "0", "root"), "line 1: the word has no form"},
        {ONE("1", "a", "0", ""), "line 1: the word has no relation"},
        {ONE("1", "a", "0", ":x"), "line 1: the word has no relation"},
        {ONE("1", "a", "0", "a b"), "line 1: the relation 'a b' must"},
        {ONE("1", "a", "0", "\x1b[31m"), "line 1: the relation '?[31m' must"},
        {ONE("1", "a", "0", "\xc3\xa9"), "must be of letters, digits and signs of ASCII"},
        {ONE("1", "a", "0", "root") "# c\n" ONE("2", "b", "1", "x"),
         "line 2: a comment between words"},
        {"{\"a\": 1}\n", "line 1: a word of CoNLL-U has 10 columns"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct treebank treebank;
        struct attn_error error;
        assert_false(read_text(&treebank, cases[n].text, &error));
        assert_message(&error, cases[n].message);
        assert_message(&error, "a.conllu: ");
        assert_null(treebank.content);
    }
    static const char nul[] = ONE("1", "a", "0", "root") "2\tb\0\t_\t_\t_\t_\t1\tx\t_\t_\n";
    struct treebank treebank;
    struct attn_error error;
    assert_false(read_bytes(&treebank, nul, sizeof nul - 1, &error));
    assert_message(&error, "a.conllu: line 2: a NUL byte");
    assert_false(treebank_read(&treebank, "/nowhere/a.conllu", &error));
    assert_message(&error, "/nowhere/a.conllu: no such file");
}

static bool read_once(void *user, struct attn_error *error)
{
    struct treebank treebank;
    bool done = treebank_read(&treebank, user, error);
    treebank_release(&treebank);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    char *path = test_data_path("treebank/small.conllu");
    assert_true(allocation_sweep(read_once, path) >= 3);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_forms_of_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
