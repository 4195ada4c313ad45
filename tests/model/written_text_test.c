/* What is shown of a text while it is written. */
#include "model/written_text.h"

#include <string.h>

#include "cmocka_test.h"

/* Pieces come one after the other, and each shows what `shown` says; the last of them is the end.
 */
static void check(const char *const *stops, size_t stop_count, const char *const *pieces,
                  const char *const *shown, size_t count, bool stopped)
{
    const struct stop_strings strings = {stops, stop_count};
    struct written_text text = {0};
    for (size_t n = 0; n < count; n++) {
        assert_false(text.stopped);
        assert_true(written_text_add(&text, pieces[n], strlen(pieces[n]), &strings));
        assert_int_equal(text.shown, strlen(shown[n]));
        assert_memory_equal(written_text_shown(&text), shown[n], text.shown);
    }
    assert_int_equal(text.stopped, stopped);
    assert_true(written_text_end(&text));
    assert_int_equal(text.shown, strlen(shown[count]));
    assert_memory_equal(written_text_shown(&text), shown[count], text.shown);
    written_text_release(&text);
}

static void test_whole_characters(void **state)
{
    (void)state;
    const char *const pieces[] = {"a", "\xc4", "\x8f", "b\xf0\x9f", "\x98", "\x82!", "", "\xe2"};
    const char *const shown[] = {"a", "", "\xc4\x8f",    "b", "", "\xf0\x9f\x98\x82!",
                                 "",  "", "\xef\xbf\xbd"};
    check(NULL, 0, pieces, shown, 8, false);
}

static void test_a_stop_across_pieces(void **state)
{
    (void)state;
    const char *const stops[] = {"\nUser:"};
    const char *const pieces[] = {"Yes.", "\n", "Us", "ed. ", "No\nUser", ":", "?"};
    const char *const shown[] = {"Yes.", "", "", "\nUsed. ", "No", "", ""};
    check(stops, 1, pieces, shown, 6, true);
}

static void test_a_stop_within_a_piece_cuts_it(void **state)
{
    (void)state;
    const char *const stops[] = {"END", "."};
    const char *const pieces[] = {"one two. three END"};
    const char *const shown[] = {"one two", ""};
    check(stops, 2, pieces, shown, 1, true);
    const char *const others[] = {"one ENDtwo."};
    const char *const shown_of_others[] = {"one ", ""};
    check(stops, 2, others, shown_of_others, 1, true);
}

static void test_a_begin_that_begins_again(void **state)
{
    (void)state;
    const char *const stops[] = {"aab"};
    const char *const pieces[] = {"a", "a", "a", "a", "b"};
    const char *const shown[] = {"", "", "a", "a", "", ""};
    check(stops, 1, pieces, shown, 5, true);
    const char *const unfinished[] = {"xaa"};
    const char *const shown_of_unfinished[] = {"x", "aa"};
    check(stops, 1, unfinished, shown_of_unfinished, 1, false);
}

static void test_of_several_stops(void **state)
{
    (void)state;
    const char *const stops[] = {"abcd", "bX"};
    const char *const pieces[] = {"a", "b", "c", "abX"};
    const char *const shown[] = {"", "", "", "abca", ""};
    check(stops, 2, pieces, shown, 4, true);
}

static void test_a_stop_of_several_bytes_a_character(void **state)
{
    (void)state;
    const char *const stops[] = {"\xe2\x82\xac\xc3\xa9"};
    const char *const pieces[] = {"5\xe2\x82", "\xac\xc3", "\xa9 is"};
    const char *const shown[] = {"5", "", "", ""};
    check(stops, 1, pieces, shown, 3, true);
    const char *const others[] = {"5\xe2\x82\xac", "\xc3\xa8"};
    const char *const shown_of_others[] = {"5", "\xe2\x82\xac\xc3\xa8", ""};
    check(stops, 1, others, shown_of_others, 2, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_characters),
        cmocka_unit_test(test_a_stop_across_pieces),
        cmocka_unit_test(test_a_stop_within_a_piece_cuts_it),
        cmocka_unit_test(test_a_begin_that_begins_again),
        cmocka_unit_test(test_of_several_stops),
        cmocka_unit_test(test_a_stop_of_several_bytes_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
