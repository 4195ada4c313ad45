#include "draw/terminal.h"

#include <math.h>
#include <string.h>

#include "cmocka_test.h"

static void assert_ranking(const struct ranking_line *lines, size_t count, float scale, int indent,
                           enum terminal_color color, const char *expected)
{
    struct attn_buffer out = {0};
    draw_ranking(lines, count, scale, indent, color, &out);
    assert_false(out.failed);
    assert_string_equal(out.size ? out.data : "", expected);
    attn_buffer_release(&out);
}

static void labels_are_padded_by_their_width(void **state)
{
    (void)state;
    static const struct ranking_line lines[] = {
        {"screwdriver", 0.5f}, {"你好", 0.25f}, {"e\xcc\x81", 0.0f}, {"\n", 0.119f}};
    assert_ranking(lines, 4, 0.5f, 2, TERMINAL_PLAIN,
                   "  screwdriver  0.500  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n"
                   "  你好         0.250  ▇▇▇▇▇▇▇▇▇▇▇▇\n"
                   "  e\xcc\x81            0.000\n"
                   "  ↵            0.119  ▇▇▇▇▇▇\n");
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    assert_ranking(NULL, 0, 1, 0, TERMINAL_COLOR, "");
}

static void a_bar_never_leaves_its_room(void **state)
{
    (void)state;
    static const struct ranking_line lines[] = {{"a", 3.0f}, {"b", -1.0f}, {"c", NAN}};
    assert_ranking(lines, 3, 1, 0, TERMINAL_PLAIN,
                   "a  3.000  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n"
                   "b  -1.000\n"
                   "c    NaN\n");
}

static void colour_is_for_terminals(void **state)
{
    (void)state;
    static const struct ranking_line line = {"a", 0.1f};
    assert_ranking(&line, 1, 1, 0, TERMINAL_COLOR, "a  0.100  \x1b[36m▇▇\x1b[0m\n");
    assert_ranking(&line, 1, 1, 0, TERMINAL_PLAIN, "a  0.100  ▇▇\n");
}

static void no_control_reaches_the_terminal(void **state)
{
    (void)state;
    char label[40];
    for (int byte = 1; byte < 256; byte++) {
        size_t size = 0;
        label[size++] = 'a';
        label[size++] = (char)byte;
        label[size] = '\0';
        struct attn_buffer out = {0};
        draw_label(label, &out);
        for (size_t i = 0; i < out.size; i++)
            assert_true((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7f);
        attn_buffer_release(&out);
    }
}

static void arabic_is_isolated_on_a_terminal_only(void **state)
{
    (void)state;
    static const struct ranking_line line = {"مرحبا", 0.01f};
    assert_ranking(&line, 1, 1, 0, TERMINAL_PLAIN, "مرحبا  0.010\n");
    assert_ranking(&line, 1, 1, 0, TERMINAL_COLOR, "\xe2\x81\xa8مرحبا\xe2\x81\xa9  0.010\n");
}

static void long_labels_are_cut(void **state)
{
    (void)state;
    struct attn_buffer out = {0};
    draw_label("Donaudampfschifffahrtsgesellschaft", &out);
    assert_string_equal(out.data, "Donaudampfschifffahrtsg…");
    attn_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_padded_by_their_width),
        cmocka_unit_test(nothing_gives_nothing),
        cmocka_unit_test(a_bar_never_leaves_its_room),
        cmocka_unit_test(colour_is_for_terminals),
        cmocka_unit_test(no_control_reaches_the_terminal),
        cmocka_unit_test(arabic_is_isolated_on_a_terminal_only),
        cmocka_unit_test(long_labels_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
