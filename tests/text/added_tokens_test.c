/* Finding added tokens in a text. */
#include <string.h>

#include "cmocka_test.h"
#include "text/added_tokens.h"

static struct added_tokens set_of(const struct added_token *tokens, size_t count)
{
    struct added_tokens set = {0};
    for (size_t i = 0; i < count; i++) {
        struct added_token token = tokens[i];
        token.length = strlen(token.spelling);
        assert_true(added_tokens_push(&set, &token));
    }
    assert_null(added_tokens_seal(&set));
    return set;
}

/* Expects these matches in the text and no other. */
static void assert_matches(const struct added_tokens *set, bool plain, const char *text,
                           const struct added_match *expected, size_t count)
{
    struct added_search search = {0};
    struct added_match match;
    for (size_t i = 0; i < count; i++) {
        assert_true(added_tokens_next(set, plain, text, strlen(text), &search, &match));
        assert_int_equal(match.id, expected[i].id);
        assert_int_equal(match.begin, expected[i].begin);
        assert_int_equal(match.end, expected[i].end);
    }
    assert_false(added_tokens_next(set, plain, text, strlen(text), &search, &match));
}

static void test_leftmost_longest(void **state)
{
    (void)state;
    static const struct added_token tokens[] = {{.spelling = "b", .id = 1},
                                                {.spelling = "ab", .id = 2},
                                                {.spelling = "abcd", .id = 3},
                                                {.spelling = "bc", .id = 4}};
    struct added_tokens set = set_of(tokens, 4);
    assert_matches(&set, false, "abc", (struct added_match[]){{2, 0, 2}}, 1);
    assert_matches(&set, false, "abcdabce", (struct added_match[]){{3, 0, 4}, {2, 4, 6}}, 2);
    assert_matches(&set, false, "xbcb", (struct added_match[]){{4, 1, 3}, {1, 3, 4}}, 2);
    assert_matches(&set, false, "", NULL, 0);
    added_tokens_release(&set);
}

/* "abc" is not a single word there; "bcd" overlaps it. */
static void test_a_discarded_match_hides(void **state)
{
    (void)state;
    static const struct added_token tokens[] = {{.spelling = "abc", .id = 1, .single_word = true},
                                                {.spelling = "bcd", .id = 2}};
    struct added_tokens set = set_of(tokens, 2);
    assert_matches(&set, false, "abcd", NULL, 0);
    assert_matches(&set, false, "abc bcd", (struct added_match[]){{1, 0, 3}, {2, 4, 7}}, 2);
    added_tokens_release(&set);

    static const struct added_token specials[] = {{.spelling = "<s>", .id = 1, .special = true},
                                                  {.spelling = "s>", .id = 2}};
    set = set_of(specials, 2);
    assert_matches(&set, true, "<s> s>", (struct added_match[]){{2, 4, 6}}, 1);
    assert_matches(&set, false, "<s> s>", (struct added_match[]){{1, 0, 3}, {2, 4, 6}}, 2);
    added_tokens_release(&set);
}

static void test_single_words(void **state)
{
    (void)state;
    static const struct added_token tokens[] = {{.spelling = "ab", .id = 1, .single_word = true}};
    struct added_tokens set = set_of(tokens, 1);
    assert_matches(&set, false, "ab", (struct added_match[]){{1, 0, 2}}, 1);
    assert_matches(&set, false, "-ab.", (struct added_match[]){{1, 1, 3}}, 1);
    assert_matches(&set, false,
                   "ab_ 1ab ab\xCC\x81 \xC3\xA9"
                   "ab",
                   NULL, 0);
    added_tokens_release(&set);
}

static void test_stripping(void **state)
{
    (void)state;
    static const struct added_token tokens[] = {{.spelling = "<l>", .id = 1, .lstrip = true},
                                                {.spelling = "<r>", .id = 2, .rstrip = true},
                                                {.spelling = "<n>", .id = 3}};
    struct added_tokens set = set_of(tokens, 3);
    assert_matches(&set, false, "a \xC2\xA0<l> b", (struct added_match[]){{1, 1, 7}}, 1);
    assert_matches(&set, false,
                   "a <r> \xE3\x80\x80"
                   "b",
                   (struct added_match[]){{2, 2, 9}}, 1);
    assert_matches(&set, false, " <n> ", (struct added_match[]){{3, 1, 4}}, 1);
    /* The space between two is taken once. */
    assert_matches(&set, false, "<r> <l>", (struct added_match[]){{2, 0, 4}, {1, 4, 7}}, 2);
    added_tokens_release(&set);
}

static void test_tokens_that_begin_with_space(void **state)
{
    (void)state;
    static const struct added_token tokens[] = {{.spelling = "<r>", .id = 1, .rstrip = true},
                                                {.spelling = " a", .id = 2},
                                                {.spelling = "  ", .id = 3}};
    struct added_tokens set = set_of(tokens, 3);
    assert_matches(&set, false, "<r> a", (struct added_match[]){{1, 0, 4}, {2, 4, 5}}, 2);
    assert_matches(&set, false, "<r>  b", (struct added_match[]){{1, 0, 5}}, 1);
    added_tokens_release(&set);
}

static void test_repeated_spellings(void **state)
{
    (void)state;
    struct added_tokens set = {0};
    struct added_token token = {.spelling = "x", .length = 1, .id = 1};
    assert_true(added_tokens_push(&set, &token));
    assert_true(added_tokens_push(&set, &token));
    const struct added_token *repeated = added_tokens_seal(&set);
    assert_non_null(repeated);
    assert_string_equal(repeated->spelling, "x");
    added_tokens_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leftmost_longest),
        cmocka_unit_test(test_a_discarded_match_hides),
        cmocka_unit_test(test_single_words),
        cmocka_unit_test(test_stripping),
        cmocka_unit_test(test_tokens_that_begin_with_space),
        cmocka_unit_test(test_repeated_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
