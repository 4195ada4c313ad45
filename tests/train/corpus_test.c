#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "train/corpus.h"
#include "word_tokenizer.h"

struct fixture {
    char *folder, *path;
    struct tokenizer *tokenizer;
};

static int begin(void **user)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->folder = scratch_folder_create();
    fixture->path = attn_path_join(fixture->folder, "corpus.txt");
    fixture->tokenizer = word_tokenizer_open(fixture->folder);
    *user = fixture;
    return 0;
}

static int end(void **user)
{
    struct fixture *fixture = *user;
    tokenizer_close(fixture->tokenizer);
    scratch_folder_remove(fixture->folder);
    free(fixture->path);
    free(fixture);
    return 0;
}

/* `words` words, twenty a line: w0 w1 … w59 w0 …; newly allocated. */
static char *make_text(int words)
{
    struct attn_buffer text = {0};
    for (int i = 0; i < words; i++)
        attn_buffer_format(&text, "w%d%c", i % WORD_COUNT, i % 20 == 19 ? '\n' : ' ');
    return text.data;
}

static struct corpus read_corpus(const struct fixture *fixture, const char *text, double held_out)
{
    struct corpus corpus;
    struct attn_error error;
    scratch_write_text(fixture->folder, "corpus.txt", text);
    if (!corpus_read(&corpus, fixture->path, held_out, &error))
        fail_msg("%s", error.message);
    return corpus;
}

/* The parts meet at a line's end, and every word is in one of them, in order. */
static void test_parts(void **user)
{
    const struct fixture *fixture = *user;
    struct attn_error error;
    char *text = make_text(1000);
    struct corpus corpus = read_corpus(fixture, text, 0.1);
    size_t size = corpus.size, training = corpus.training_size;
    assert_int_equal(size, strlen(text));
    assert_true(text[training] == '\n' && training <= size - size / 10);
    assert_true(training > size - size / 10 - 100);
    assert_true(corpus_encode(&corpus, fixture->tokenizer, &error));
    assert_null(corpus.text);
    assert_int_equal(corpus.training_count + corpus.held_out_count, 1000);
    assert_int_equal(corpus.training_count % 20, 0);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(corpus.ids[i], WORD_FIRST + i % WORD_COUNT);
    corpus_release(&corpus);
    corpus = read_corpus(fixture, text, 0.0);
    assert_int_equal(corpus.training_size, size);
    corpus_release(&corpus);
    free(text);
}

/* Longer than what is encoded at a time. */
static void test_a_long_text(void **user)
{
    const struct fixture *fixture = *user;
    enum { WORDS = 700000 };
    struct attn_error error;
    char *text = make_text(WORDS);
    struct corpus corpus = read_corpus(fixture, text, 0.3);
    assert_true(corpus.size > 2 << 20);
    assert_true(corpus_encode(&corpus, fixture->tokenizer, &error));
    assert_int_equal(corpus.training_count + corpus.held_out_count, WORDS);
    for (int64_t i = 0; i < WORDS; i++)
        assert_int_equal(corpus.ids[i], WORD_FIRST + i % WORD_COUNT);
    corpus_release(&corpus);
    free(text);
}

/* Without a line end near, a character stays whole. */
static void test_a_text_without_lines(void **user)
{
    const struct fixture *fixture = *user;
    for (int shift = 0; shift < 3; shift++) {
        char text[100] = "";
        for (int i = 0; i < shift; i++)
            strcat(text, "a");
        for (int i = 0; i < 20; i++)
            strcat(text, "\xE6\x9D\xB1");
        struct corpus corpus = read_corpus(fixture, text, 0.5);
        assert_int_equal((corpus.training_size - (size_t)shift) % 3, 0);
        corpus_release(&corpus);
    }
    struct corpus corpus = read_corpus(fixture, "x", 0.99);
    assert_int_equal(corpus.training_size, 1);
    corpus_release(&corpus);
}

/* Special tokens in a text are letters like others. */
static void test_special_tokens_are_plain(void **user)
{
    const struct fixture *fixture = *user;
    struct attn_error error;
    struct corpus corpus = read_corpus(fixture, "w1 [MASK] w2", 0.0);
    assert_true(corpus_encode(&corpus, fixture->tokenizer, &error));
    assert_int_equal(corpus.training_count, 5);
    for (int i = 1; i < 4; i++)
        assert_int_equal(corpus.ids[i], 1);
    corpus_release(&corpus);
}

static void test_checksums(void **user)
{
    const struct fixture *fixture = *user;
    struct corpus one = read_corpus(fixture, "w1 w2\nw3 w4 w5", 0.0);
    struct corpus same = read_corpus(fixture, "w1 w2\nw3 w4 w5", 0.5);
    struct corpus other = read_corpus(fixture, "w1 w2\nw3 w4 w6", 0.0);
    struct corpus longer = read_corpus(fixture, "w1 w2\nw3 w4 w5 ", 0.0);
    assert_true(one.checksum == same.checksum);
    assert_true(one.checksum != other.checksum && one.checksum != longer.checksum);
    corpus_release(&one);
    corpus_release(&same);
    corpus_release(&other);
    corpus_release(&longer);
}

static void test_refusals(void **user)
{
    const struct fixture *fixture = *user;
    struct corpus corpus;
    struct attn_error error = {""};
    assert_false(corpus_read(&corpus, fixture->path, 0.1, &error));
    assert_message(&error, "corpus.txt: no such file");
    scratch_write_text(fixture->folder, "corpus.txt", "");
    assert_false(corpus_read(&corpus, fixture->path, 0.1, &error));
    assert_message(&error, "corpus.txt: is empty");
    scratch_write_text(fixture->folder, "corpus.txt", "ab\xff");
    assert_false(corpus_read(&corpus, fixture->path, 0.1, &error));
    assert_message(&error, "byte 2 is not valid UTF-8");
    assert_false(corpus_read(&corpus, fixture->folder, 0.1, &error));
    assert_message(&error, "folder");
}

static bool read_and_encode(void *user, struct attn_error *error)
{
    const struct fixture *fixture = user;
    struct corpus corpus;
    if (!corpus_read(&corpus, fixture->path, 0.2, error))
        return false;
    bool done = corpus_encode(&corpus, fixture->tokenizer, error);
    corpus_release(&corpus);
    return done;
}

static void test_failing_allocations(void **user)
{
    struct fixture *fixture = *user;
    char *text = make_text(200);
    scratch_write_text(fixture->folder, "corpus.txt", text);
    free(text);
    assert_true(allocation_sweep(read_and_encode, fixture) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts, begin, end),
        cmocka_unit_test_setup_teardown(test_a_long_text, begin, end),
        cmocka_unit_test_setup_teardown(test_a_text_without_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_special_tokens_are_plain, begin, end),
        cmocka_unit_test_setup_teardown(test_checksums, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_failing_allocations, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
