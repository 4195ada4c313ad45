/* Curves: what stands in the picture, and what is refused. */
#include "draw/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"

static const double steps[] = {1, 2, 3, 4, 5};
static const double losses[] = {10, 6, 4, 3, 2.5};

static struct curve curve_of(const struct curve_series *series, size_t count)
{
    return (struct curve){"A title", "step", "loss", series, count};
}

/* The caller releases it. */
static struct attn_buffer draw(const struct curve *curve)
{
    struct attn_buffer svg = {0};
    struct attn_error error;
    if (!curve_svg(curve, &svg, &error))
        fail_msg("%s", error.message);
    assert_non_null(strstr(svg.data, "</svg>\n"));
    assert_null(strstr(svg.data, "nan"));
    assert_null(strstr(svg.data, "inf"));
    return svg;
}

static struct attn_buffer draw_one(const double *x, const double *y, size_t points)
{
    const struct curve_series series = {"training", points, x, y};
    struct curve curve = curve_of(&series, 1);
    return draw(&curve);
}

static size_t count(const struct attn_buffer *svg, const char *part)
{
    size_t found = 0;
    for (const char *at = svg->data; (at = strstr(at, part)); at += strlen(part))
        found++;
    return found;
}

static void assert_has(const struct attn_buffer *svg, const char *part)
{
    if (!strstr(svg->data, part))
        fail_msg("%s is not in %s", part, svg->data);
}

static void names_and_numbers_stand_in_it(void **state)
{
    (void)state;
    static const double held_out[] = {9, 7, 5, 4, 3.5};
    const struct curve_series series[] = {{"training", 5, steps, losses},
                                          {"held out", 5, steps, held_out}};
    struct curve curve = curve_of(series, 2);
    struct attn_buffer svg = draw(&curve);
    static const char *const texts[] = {">A title<",  ">step<", ">loss<", ">training<",
                                        ">held out<", ">1<",    ">5<",    ">10<"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_has(&svg, texts[i]);
    assert_int_equal(count(&svg, "<path"), 2);
    assert_int_equal(count(&svg, "<circle"), 10);
    assert_null(strstr(svg.data, ">1.5<")); /* steps are whole numbers */
    attn_buffer_release(&svg);
}

/* Larger values stand higher, later ones further right; the ends of x are the plot's. */
static void points_stand_where_they_belong(void **state)
{
    (void)state;
    struct attn_buffer svg = draw_one(steps, losses, 5);
    const char *path = strstr(svg.data, " d=\"M");
    assert_non_null(path);
    path += strlen(" d=\"M");
    double x[5], y[5];
    char *end = (char *)path;
    for (int i = 0; i < 5; i++) {
        x[i] = strtod(end + (i > 0), &end);
        y[i] = strtod(end, &end);
    }
    assert_true(!(fabs(x[0] - 76) > 0.05) && !(fabs(x[4] - 732) > 0.05));
    for (int i = 1; i < 5; i++) {
        assert_true(!(fabs(x[i] - x[i - 1] - 164) > 0.11));
        assert_true(y[i] > y[i - 1]);
    }
    double unit = (y[1] - y[0]) / 4; /* pixels a loss */
    assert_true(!(fabs(y[4] - y[3] - unit / 2) > 0.11));
    attn_buffer_release(&svg);
}

static void points_that_are_no_numbers_are_gaps(void **state)
{
    (void)state;
    const double y[] = {NAN, 6, INFINITY, 3, 2.5};
    struct attn_buffer svg = draw_one(steps, y, 5);
    assert_int_equal(count(&svg, "<circle"), 3);
    const char *path = strstr(svg.data, " d=\"");
    char line[200];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(path + 4, "\""), path + 4);
    int moves = 0, dots = 0;
    for (const char *c = line; *c; c++) {
        moves += *c == 'M';
        dots += *c == 'h';
    }
    assert_int_equal(moves, 2);
    assert_int_equal(dots, 1); /* the 6, which has no neighbour */
    attn_buffer_release(&svg);
}

/* A million points make no larger picture than the plot's columns do, and lose no extreme. */
static void many_points_stay_small(void **state)
{
    (void)state;
    enum { POINTS = 1000000 };
    double *x = malloc(POINTS * sizeof *x), *y = malloc(POINTS * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    for (int i = 0; i < POINTS; i++) {
        x[i] = i;
        y[i] = 5 + 0.001 * (i % 7);
    }
    y[POINTS / 2] = 0;
    y[POINTS / 3] = 10;
    y[POINTS / 4] = NAN;
    struct attn_buffer svg = draw_one(x, y, POINTS);
    assert_true(svg.size < 60000);
    assert_has(&svg, " 80.0L");  /* the top of the plot, which is the 10 */
    assert_has(&svg, " 400.0L"); /* and the bottom, the 0 */
    attn_buffer_release(&svg);
    free(x);
    free(y);
}

/* One point, equal values, tiny and huge ones: round numbers all the same. */
static void any_range_has_axes(void **state)
{
    (void)state;
    static const double ranges[][2] = {{3, 3},           {0, 0},          {-1e-9, 1e-9},
                                       {1e15, 1e15 + 4}, {-1e300, 1e300}, {1e-300, 2e-300},
                                       {-5, -4.99},      {0, 1e6},        {1e-320, 1e-320}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        for (size_t points = 1; points <= 2; points++) {
            print_message("# range %zu, %zu points\n", i, points);
            struct attn_buffer svg = draw_one(steps, ranges[i], points);
            size_t lines = count(&svg, "<line");
            assert_true(lines >= 3 && lines <= 24);
            attn_buffer_release(&svg);
            svg = draw_one(ranges[i], steps, points);
            attn_buffer_release(&svg);
        }
}

static void markup_in_names_is_escaped(void **state)
{
    (void)state;
    const struct curve_series series = {"a<b>&\"\n\xFF", 5, steps, losses};
    struct curve curve = {"</svg><script>", NULL, NULL, &series, 1};
    struct attn_buffer svg = draw(&curve);
    assert_null(strstr(svg.data, "<script>"));
    assert_has(&svg, "&lt;/svg&gt;&lt;script&gt;");
    assert_has(&svg, "a&lt;b&gt;&amp;&quot;\u21B5\\xFF");
    attn_buffer_release(&svg);
}

static void assert_refused(const struct curve *curve, const char *words)
{
    struct attn_buffer svg = {0};
    struct attn_error error = {""};
    assert_false(curve_svg(curve, &svg, &error));
    assert_message(&error, words);
    assert_int_equal(svg.size, 0);
    attn_buffer_release(&svg);
}

static void nothing_to_draw_is_refused(void **state)
{
    (void)state;
    static const double none[] = {NAN, INFINITY, -INFINITY, NAN, NAN};
    static const double wide[] = {-1.5e308, 1.5e308};
    const struct curve_series broken = {"x", 5, steps, none}, huge = {"x", 2, steps, wide};
    struct curve_series many[CURVE_SERIES_LIMIT + 1];
    for (int i = 0; i <= CURVE_SERIES_LIMIT; i++)
        many[i] = (struct curve_series){"x", 5, steps, losses};
    struct curve curve = curve_of(&broken, 1);
    assert_refused(&curve, "without a finite point");
    curve = curve_of(NULL, 0);
    assert_refused(&curve, "without a finite point");
    curve = curve_of(&huge, 1);
    assert_refused(&curve, "span more than a double holds");
    curve = curve_of(many, CURVE_SERIES_LIMIT + 1);
    assert_refused(&curve, "9 series, expected at most 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_stand_in_it),
        cmocka_unit_test(points_stand_where_they_belong),
        cmocka_unit_test(points_that_are_no_numbers_are_gaps),
        cmocka_unit_test(many_points_stay_small),
        cmocka_unit_test(any_range_has_axes),
        cmocka_unit_test(markup_in_names_is_escaped),
        cmocka_unit_test(nothing_to_draw_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
