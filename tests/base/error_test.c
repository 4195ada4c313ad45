/* Messages are one line of valid UTF-8 that cannot steer a terminal, whatever a file's names are.
 */
#include <string.h>

#include "base/error.h"
#include "cmocka_test.h"

static void test_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"weight", "weight"},
        {"größe 語 😀", "größe 語 😀"},
        {"a\nb\r\tc\x7f", "a?b??c?"},
        {"\x1b[2J", "?[2J"},
        /* U+0085 and U+009B, which ends a line and begins a sequence; U+00A0 is a space. */
        {"a\xC2\x85\xC2\x9B\x32J\xC2\xA0", "a??2J\xC2\xA0"},
        {"a\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA", "a??\xE2\x80\xAA"},
        /* No character begins so, or none ends so. */
        {"\x9B\x80\xFF\xC3", "????"},
        {"\xC0\x8A\xE0\x80\x8A", "?????"},
        {"\xED\xA0\x80 \xF4\x90\x80\x80 \xF5\x80\x80\x80", "??? ???? ????"},
        {"\xE8\xAA_\xF0\x9F\x98_\xC3\n", "??_???_??"},
        {"\xF4\x8F\xBF\xBF\xED\x9F\xBF\xE0\xA0\x80", "\xF4\x8F\xBF\xBF\xED\x9F\xBF\xE0\xA0\x80"},
    };
    struct attn_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(attn_error_set(&error, "%s", cases[i].name));
        assert_string_equal(error.message, cases[i].shown);
    }
}

/* A message that is cut within a character does not end with a part of it. */
static void test_cut(void **state)
{
    (void)state;
    struct attn_error error;
    char name[2 * ATTN_ERROR_MESSAGE_SIZE] = "";
    for (int i = 0; i < ATTN_ERROR_MESSAGE_SIZE / 2; i++)
        strcat(name, "é");
    assert_false(attn_error_set(&error, "%s", name));
    assert_int_equal(strlen(error.message), ATTN_ERROR_MESSAGE_SIZE - 1);
    assert_memory_equal(error.message, name, ATTN_ERROR_MESSAGE_SIZE - 2);
    assert_string_equal(error.message + ATTN_ERROR_MESSAGE_SIZE - 2, "?");
}

static void test_nobody_asks(void **state)
{
    (void)state;
    assert_false(attn_error_set(NULL, "%d", 1));
    assert_false(attn_error_memory(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_nobody_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
