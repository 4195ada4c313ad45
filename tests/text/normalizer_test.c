/* BertNormalizer: what it makes of a text, and which bytes that came from. */
#include <stdlib.h>
#include <string.h>

#include "text/bert_normalizer.h"
#include "tokenizer_test.h"

static const struct bert_normalizer uncased = {true, true, true, true};

static void assert_normal(const struct bert_normalizer *settings, const char *text, size_t size,
                          const char *expected)
{
    struct normalized_text normalized = {0};
    assert_true(bert_normalize(settings, text, 0, size, &normalized));
    assert_int_equal(normalized.size, strlen(expected));
    if (normalized.size > 0)
        assert_memory_equal(normalized.bytes, expected, normalized.size);
    normalized_text_release(&normalized);
}

static void assert_uncased(const char *text, const char *expected)
{
    assert_normal(&uncased, text, strlen(text), expected);
}

/* spans: begin and end for each byte of the result. */
static void assert_spans(const struct bert_normalizer *settings, const char *text, size_t begin,
                         const char *expected, const uint32_t (*spans)[2])
{
    struct normalized_text normalized = {0};
    assert_true(bert_normalize(settings, text, begin, strlen(text), &normalized));
    assert_int_equal(normalized.size, strlen(expected));
    assert_memory_equal(normalized.bytes, expected, normalized.size);
    for (size_t i = 0; i < normalized.size; i++) {
        assert_int_equal(normalized.spans[i].begin, spans[i][0]);
        assert_int_equal(normalized.spans[i].end, spans[i][1]);
    }
    normalized_text_release(&normalized);
}

static void test_accents(void **state)
{
    (void)state;
    static const char text[] = "\xC3\x89te\xCC\x81"; /* É t e and an acute */
    assert_normal(&(struct bert_normalizer){.strip_accents = true, .lowercase = true}, text, 6,
                  "ete");
    assert_normal(&(struct bert_normalizer){.strip_accents = true}, text, 6, "Ete");
    assert_normal(&(struct bert_normalizer){.lowercase = true}, text, 6, "\xC3\xA9te\xCC\x81");
    assert_normal(&(struct bert_normalizer){0}, text, 6, text);
}

static void test_control_characters(void **state)
{
    (void)state;
    assert_normal(&uncased, "a\0b\x7F\x01\xEF\xBF\xBD\xC2\xAD\xE2\x80\x8B\xEF\xBB\xBF", 16, "ab");
    assert_uncased("a\tb\nc\rd\xC2\xA0\xE3\x80\x80"
                   "e",
                   "a b c d  e");
    /* Vertical tab, form feed and next line are controls first, white space second. */
    assert_uncased("a\vb\fc\xC2\x85"
                   "d",
                   "abcd");
    const struct bert_normalizer unclean = {false, true, true, true};
    assert_normal(&unclean, "a\x01\t\xC2\xAD", 5, "a\x01\t\xC2\xAD");
}

static void test_ideographs(void **state)
{
    (void)state;
    assert_uncased("a\xE4\xB8\xAD\xF0\xA0\x80\x80"
                   "b",
                   "a \xE4\xB8\xAD  \xF0\xA0\x80\x80 b");
    assert_uncased("\xE3\x81\x82\xED\x95\x9C", "\xE3\x81\x82\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB");
    const struct bert_normalizer together = {true, false, true, true};
    assert_normal(&together, "a\xE4\xB8\xAD", 4, "a\xE4\xB8\xAD");
    /* A compatibility ideograph becomes the unified one, between its spaces. */
    assert_uncased("\xEF\xA4\x80", " \xE8\xB1\x88 ");
}

static void test_case(void **state)
{
    (void)state;
    const struct bert_normalizer accented = {true, true, false, true};
    assert_normal(&accented, "\xC4\xB0", 2, "i\xCC\x87"); /* İ is i and a dot */
    assert_uncased("\xC4\xB0I", "ii");
    assert_uncased("\xCE\xA3\xCE\x91\xCE\xA3", "\xCF\x83\xCE\xB1\xCF\x83");  /* no final sigma */
    assert_normal(&accented, "\xE1\xBA\x9E\xC7\x85", 5, "\xC3\x9F\xC7\x86"); /* ẞ, Dž */
    assert_normal(&accented, "\xF0\x90\x90\x80", 4, "\xF0\x90\x90\xA8");     /* Deseret */
}

static void test_spans(void **state)
{
    (void)state;
    /* x É ­(soft hyphen) e´ 中 İ */
    static const char text[] = "x\xC3\x89\xC2\xAD"
                               "e\xCC\x81\xE4\xB8\xAD\xC4\xB0";
    static const uint32_t spans[][2] = {{0, 1},  {1, 3},  {5, 6},  {8, 11}, {8, 11},
                                        {8, 11}, {8, 11}, {8, 11}, {11, 13}};
    assert_spans(&uncased, text, 0, "xee \xE4\xB8\xAD i", spans);
    static const uint32_t tail[][2] = {{5, 6},  {8, 11}, {8, 11}, {8, 11},
                                       {8, 11}, {8, 11}, {11, 13}};
    assert_spans(&uncased, text, 5, "e \xE4\xB8\xAD i", tail);
    const struct bert_normalizer accented = {true, true, false, true};
    static const uint32_t dotted[][2] = {{0, 2}, {0, 2}, {0, 2}, {2, 3}};
    assert_spans(&accented, "\xC4\xB0z", 0, "i\xCC\x87z", dotted);
}

/* Marks that stripping keeps are ordered by class; they take their sources as these stand. */
static void test_ordered_marks(void **state)
{
    (void)state;
    const struct bert_normalizer strip = {.strip_accents = true};
    /* U+1D16D has class 226, U+302E 224, U+1D165 216, the acute between them 230. */
    static const char text[] = "a\xF0\x9D\x85\xAD\xCC\x81\xE3\x80\xAE\xF0\x9D\x85\xA5z";
    static const uint32_t spans[][2] = {{0, 1}, {1, 5},  {1, 5},  {1, 5},  {1, 5},  {5, 7},  {5, 7},
                                        {5, 7}, {7, 10}, {7, 10}, {7, 10}, {7, 10}, {14, 15}};
    assert_spans(&strip, text, 0, "a\xF0\x9D\x85\xA5\xE3\x80\xAE\xF0\x9D\x85\xADz", spans);
}

/* U+0899, of class 220, is younger than the reference's tables: to it a letter that ends a run. */
static void test_later_marks(void **state)
{
    (void)state;
    assert_uncased("a\xE3\x80\xAE\xE0\xA2\x99", "a\xE3\x80\xAE\xE0\xA2\x99");
    assert_uncased("a\xE3\x80\xAE\xCC\xA3", "a\xE3\x80\xAE");
}

/* Quadratic ordering of these marks would take minutes. */
static void test_a_million_marks(void **state)
{
    (void)state;
    enum { PAIRS = 500000 };
    char *text = malloc(5 * PAIRS + 1), *expected = malloc(3 * PAIRS + 1);
    assert_non_null(text);
    assert_non_null(expected);
    for (size_t i = 0; i < PAIRS; i++) {
        memcpy(text + 5 * i, "\xCC\x81\xE3\x80\xAE", 5);
        memcpy(expected + 3 * i, "\xE3\x80\xAE", 3);
    }
    expected[3 * PAIRS] = '\0';
    assert_normal(&uncased, text, 5 * PAIRS, expected);
    free(text);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accents),     cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_ideographs),  cmocka_unit_test(test_case),
        cmocka_unit_test(test_spans),       cmocka_unit_test(test_ordered_marks),
        cmocka_unit_test(test_later_marks), cmocka_unit_test(test_a_million_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
