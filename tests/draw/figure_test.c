#include "draw/figure.h"

#include <math.h>
#include <string.h>

#include "cmocka_test.h"
#include "draw/color_scale.h"
#include "draw/map_check.h"
#include "small_map.h"

static void assert_refused(const struct attention_map *map, const char *words_of_message)
{
    static bool (*const formats[])(const struct attention_map *, struct attn_buffer *,
                                   struct attn_error *) = {draw_svg,       draw_png,  draw_html,
                                                           draw_page_data, draw_json, draw_npy};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct attn_buffer out = {0};
        struct attn_error error = {""};
        assert_false(formats[i](map, &out, &error));
        assert_message(&error, words_of_message);
        assert_int_equal(out.size, 0);
        attn_buffer_release(&out);
    }
}

static void labels_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct attention_map map = map_of_three();
    map.rows = 2;
    assert_refused(&map, "2 rows but 3 row labels");
    map = map_of_three();
    map.column_label_count = 2;
    assert_refused(&map, "3 columns but 2 column labels");
    map = map_of_three();
    static const char *const holes[] = {"a", NULL, "c"};
    map.column_labels = holes;
    assert_refused(&map, "column label 1 is missing");
}

static void a_map_of_nothing_is_refused(void **state)
{
    (void)state;
    struct attention_map map = map_of_three();
    map.rows = map.row_label_count = 0;
    assert_refused(&map, "0 rows and 3 columns");
    map = map_of_three();
    map.panel_count = 0;
    assert_refused(&map, "without panels");
    static const struct map_panel empty = {0, 0, NULL, NULL};
    map = map_of_three();
    map.panels = &empty;
    assert_refused(&map, "panel 0 has no weights");
}

static void titles_name_the_panel(void **state)
{
    (void)state;
    static const struct {
        struct map_panel panel;
        const char *title;
    } cases[] = {{{4, 7, NULL, NULL}, "L4H7"},
                 {{0, 0, NULL, NULL}, "L0H0"},
                 {{MAP_MEAN, MAP_MEAN, NULL, NULL}, "mean of all heads"},
                 {{4, MAP_MEAN, NULL, NULL}, "layer 4, mean of its heads"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char title[64];
        draw_panel_title(&cases[i].panel, title, sizeof title);
        assert_string_equal(title, cases[i].title);
    }
}

static double width_of_one_letter(void *user, const char *text, double size)
{
    (void)user;
    return (double)strlen(text) * size;
}

/* What a painter was asked for. */
struct record {
    double row_label_y[3], column_label_x[3];
    size_t row_labels, column_labels, panels;
};

static void ignore_rectangle(void *user, double left, double top, double width, double height,
                             struct color color)
{
    (void)user, (void)left, (void)top, (void)width, (void)height, (void)color;
}

static void record_text(void *user, const struct figure_text *text)
{
    struct record *record = user;
    if (!text->is_label)
        return;
    if (text->anchor == TEXT_END) {
        assert_string_equal(text->text, words[record->row_labels]);
        record->row_label_y[record->row_labels++] = text->y;
    } else {
        assert_string_equal(text->text, words[record->column_labels]);
        record->column_label_x[record->column_labels++] = text->x;
    }
}

static void count_panel(void *user, const struct figure *figure, const struct figure_panel *place)
{
    (void)figure, (void)place;
    ((struct record *)user)->panels++;
}

static void rows_are_queries_and_run_down(void **state)
{
    (void)state;
    struct record record = {0};
    const struct figure_painter painter = {&record, width_of_one_letter, ignore_rectangle,
                                           record_text, count_panel};
    struct attention_map map = map_of_three();
    struct figure figure;
    struct attn_error error;
    assert_true(figure_create(&figure, &map, &painter, &error));
    figure_draw(&figure, &painter);
    assert_int_equal(record.row_labels, 3);
    assert_int_equal(record.column_labels, 3);
    assert_int_equal(record.panels, 1);
    for (size_t i = 0; i < 3; i++) {
        double row = (record.row_label_y[i] - figure.top) / figure.cell;
        double column = (record.column_label_x[i] - figure.left) / figure.cell;
        assert_true(row > (double)i && row < (double)i + 1);
        assert_true(column > (double)i && column < (double)i + 1);
    }
    figure_release(&figure);
}

static double luminance(struct color color)
{
    return 0.2126 * pow(color.red / 255.0, 2.2) + 0.7152 * pow(color.green / 255.0, 2.2) +
           0.0722 * pow(color.blue / 255.0, 2.2);
}

static void scales_run_one_way(void **state)
{
    (void)state;
    struct color_scale light, dark;
    color_scale_on_white(&light);
    color_scale_on_dark(&dark);
    assert_true(luminance(light.level[0]) > 0.85);
    assert_true(luminance(dark.level[0]) < 0.03);
    for (int i = 1; i < COLOR_LEVELS; i++) {
        assert_true(luminance(light.level[i]) < luminance(light.level[i - 1]) + 0.002);
        assert_true(luminance(dark.level[i]) > luminance(dark.level[i - 1]) - 0.002);
    }
    assert_int_equal(color_level(0, 0.5f), 0);
    assert_int_equal(color_level(0.5f, 0.5f), COLOR_LEVELS - 1);
    assert_int_equal(color_level(2, 0.5f), COLOR_LEVELS - 1);
    assert_int_equal(color_level(-1, 0.5f), 0);
    assert_int_equal(color_level(NAN, 0.5f), COLOR_NOT_A_NUMBER);
    assert_int_equal(color_level(INFINITY, 0.5f), COLOR_NOT_A_NUMBER);
}

static void the_range_ignores_what_is_no_number(void **state)
{
    (void)state;
    static const float weights[] = {NAN, 0.25f, INFINITY, 0.5f, 0, 0, 0, 0, 0};
    static const float zeros[9];
    const struct map_panel panels[] = {{0, 0, weights, NULL}, {0, 1, zeros, NULL}};
    struct attention_map map = map_of_three();
    map.panels = panels;
    struct map_range range = map_get_range(&map);
    assert_true(range.has_not_a_number);
    assert_true(!(fabsf(range.largest - 0.5f) > 0));
    map.panels = panels + 1;
    range = map_get_range(&map);
    assert_false(range.has_not_a_number);
    assert_true(!(fabsf(range.largest - 1.0f) > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
        cmocka_unit_test(a_map_of_nothing_is_refused),
        cmocka_unit_test(titles_name_the_panel),
        cmocka_unit_test(rows_are_queries_and_run_down),
        cmocka_unit_test(scales_run_one_way),
        cmocka_unit_test(the_range_ignores_what_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
