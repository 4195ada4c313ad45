#include "draw/label.h"

#include <string.h>

#include "cmocka_test.h"

static void assert_shown(const char *label, const char *shown)
{
    struct attn_buffer out = {0};
    label_show(label, strlen(label), &out);
    assert_string_equal(out.data, shown);
    attn_buffer_release(&out);
}

static void assert_cut(const char *shown, size_t columns, const char *cut, bool was_cut)
{
    struct attn_buffer out = {0};
    assert_int_equal(label_cut(shown, strlen(shown), columns, &out), was_cut);
    assert_string_equal(out.data, cut);
    attn_buffer_release(&out);
}

static void letters_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const labels[] = {"screwdriver",
                                         " ok",
                                         "a<b<c",
                                         "\"",
                                         "<!--",
                                         "مرحبا",
                                         "你好",
                                         "e\xcc\x81",
                                         "क्षि",
                                         "a  b",
                                         "👨\xe2\x80\x8d👩\xe2\x80\x8d👧"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        assert_shown(labels[i], labels[i]);
}

static void controls_become_pictures(void **state)
{
    (void)state;
    assert_shown("\n", "↵");
    assert_shown("\t", "⇥");
    assert_shown("\v", "␋");
    assert_shown("a\rb\x1b[31m\x7f", "a␍b␛[31m␡");
    struct attn_buffer out = {0};
    label_show("a\0b", 3, &out);
    assert_string_equal(out.data, "a␀b");
    attn_buffer_release(&out);
}

static void blanks_alone_are_visible(void **state)
{
    (void)state;
    assert_shown("", "∅");
    assert_shown(" ", "␣");
    assert_shown("  ", "␣␣");
    assert_shown("\xc2\xa0", "\\u00A0");
    assert_shown(" \xe2\x80\x8b", "␣\\u200B");
    assert_shown("\xef\xbb\xbf", "\\uFEFF");
}

static void what_text_cannot_hold_is_spelled(void **state)
{
    (void)state;
    assert_shown("\xf0\x9f", "\\xF0\\x9F");
    assert_shown("ok\x98", "ok\\x98");
    assert_shown("\xed\xa0\x80", "\\xED\\xA0\\x80"); /* a surrogate */
    assert_shown("\xc0\xaf", "\\xC0\\xAF");          /* overlong */
    assert_shown("a\xc2\x85"
                 "b",
                 "a\\u0085b"); /* a C1 control */
    assert_shown("a\xe2\x80\xae"
                 "b",
                 "a\\u202Eb"); /* an override of direction */
    assert_shown("a\xe2\x81\xa6"
                 "b",
                 "a\\u2066b");               /* an isolate */
    assert_shown("\xe2\x80\xa8", "\\u2028"); /* a line separator */
    assert_shown("\xef\xbf\xbf", "\\uFFFF"); /* no XML character */
    assert_shown("\xf4\x8f\xbf\xbf", "\\u{10FFFF}");
}

static void a_cut_keeps_clusters_whole(void **state)
{
    (void)state;
    assert_cut("word", 4, "word", false);
    assert_cut("words", 4, "wor…", true);
    assert_cut("你好世", 6, "你好世", false);
    assert_cut("你好世界", 6, "你好…", true);
    /* A family of three is one character; so is a letter with its accent. */
    assert_cut("👨\xe2\x80\x8d👩\xe2\x80\x8d👧", 2, "👨\xe2\x80\x8d👩\xe2\x80\x8d👧", false);
    assert_cut("ab👨\xe2\x80\x8d👩\xe2\x80\x8d👧x", 4, "ab…", true);
    assert_cut("ae\xcc\x81io", 3, "ae\xcc\x81…", true);
    assert_cut("🇩🇪🇫🇷🇮🇹", 5, "🇩🇪🇫🇷…", true);
    assert_cut("你", 1, "…", true);
}

static void marks_without_end_are_cut(void **state)
{
    (void)state;
    char marks[20001] = "a";
    for (size_t i = 1; i + 1 < sizeof marks; i += 2)
        memcpy(marks + i, "\xcc\x81", 2);
    marks[19999] = '\0';
    struct attn_buffer out = {0};
    assert_true(label_cut(marks, strlen(marks), LABEL_COLUMNS, &out));
    assert_true(out.size <= LABEL_COLUMNS * 32 + 3);
    attn_buffer_release(&out);
}

static void widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t width;
    } cases[] = {{"", 0},         {"word", 4},
                 {"你好", 4},     {"e\xcc\x81", 1},
                 {"😂", 2},        {"🇩🇪", 2},
                 {"👍🏽", 2}, {"❤️", 2},
                 {"مرحبا", 5},    {"👨\xe2\x80\x8d👩\xe2\x80\x8d👧", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(label_width(cases[i].text, strlen(cases[i].text)), cases[i].width);
}

static void repaired_text_keeps_what_is_valid(void **state)
{
    (void)state;
    struct attn_buffer out = {0};
    label_repair("a\n\xf0\x9f"
                 "b\0é",
                 8, &out);
    assert_memory_equal(out.data,
                        "a\n\xef\xbf\xbd\xef\xbf\xbd"
                        "b\0é",
                        12);
    attn_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_stay_as_they_are),
        cmocka_unit_test(controls_become_pictures),
        cmocka_unit_test(blanks_alone_are_visible),
        cmocka_unit_test(what_text_cannot_hold_is_spelled),
        cmocka_unit_test(a_cut_keeps_clusters_whole),
        cmocka_unit_test(marks_without_end_are_cut),
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(repaired_text_keeps_what_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
