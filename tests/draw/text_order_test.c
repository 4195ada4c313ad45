#include "draw/text_order.h"

#include <stdlib.h>

#include "cmocka_test.h"

static void assert_order(const char *text, const int32_t *shaped, size_t expected)
{
    size_t count;
    struct ordered_letter *letters = text_order_create(text, &count);
    assert_non_null(letters);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(letters[i].shaped, shaped[i]);
    free(letters);
}

static void latin_stays(void **state)
{
    (void)state;
    assert_order("", NULL, 0);
    assert_order("a(b", (const int32_t[]){'a', '(', 'b'}, 3);
}

static void hebrew_is_turned_and_brackets_mirrored(void **state)
{
    (void)state;
    assert_order("אב(ג", (const int32_t[]){0x5d2, ')', 0x5d1, 0x5d0}, 4);
    assert_order("אב 12", (const int32_t[]){'1', '2', ' ', 0x5d1, 0x5d0}, 5);
}

static void arabic_letters_join(void **state)
{
    (void)state;
    /* beh in its final, medial and initial form, from left to right */
    assert_order("ببب", (const int32_t[]){0xfe90, 0xfe92, 0xfe91}, 3);
    /* lam and alef are one sign */
    assert_order("لا", (const int32_t[]){0xfefb}, 1);
}

static void what_is_never_seen_is_left_out(void **state)
{
    (void)state;
    assert_order("👨\xe2\x80\x8d👩", (const int32_t[]){0x1f468, 0x1f469}, 2);
    assert_order("❤\xef\xb8\x8f", (const int32_t[]){0x2764}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latin_stays),
        cmocka_unit_test(hebrew_is_turned_and_brackets_mirrored),
        cmocka_unit_test(arabic_letters_join),
        cmocka_unit_test(what_is_never_seen_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
