#include "allocation_sweep.h"

#include "cmocka_test.h"
#include "draw/attention_map.h"
#include "draw/curve.h"
#include "draw/terminal.h"

static const char *const labels[] = {"a<b", "مرحبا", "\n", "Donaudampfschifffahrtsgesellschaft"};
static const float weights[16] = {1, 0.5f, 0.25f};
static const struct map_panel panels[] = {{0, 0, weights, NULL}, {0, 1, weights, NULL}};
static const size_t row_tokens[] = {0, 1, 1, 3}, row_token_counts[] = {1, 1, 2, 1};
static const struct map_vectors vectors = {.layers = 1,
                                           .heads = 2,
                                           .key_heads = 1,
                                           .d = 2,
                                           .tokens = 4,
                                           .scale = 1,
                                           .queries = weights,
                                           .keys = weights,
                                           .values = weights,
                                           .labels = labels,
                                           .row_tokens = row_tokens,
                                           .row_token_counts = row_token_counts};
static const struct attention_map map = {.model = "model",
                                         .text = "text",
                                         .text_size = 4,
                                         .pair = "pair",
                                         .pair_size = 4,
                                         .rows = 4,
                                         .columns = 4,
                                         .row_labels = labels,
                                         .row_label_count = 4,
                                         .column_labels = labels,
                                         .column_label_count = 4,
                                         .panels = panels,
                                         .panel_count = 2,
                                         .measure = "norm",
                                         .vectors = &vectors};

/* Each attempt at a PNG reads the machine's fonts, so that fewer must do. */
static const struct attention_map small_map = {.text = "text",
                                               .text_size = 4,
                                               .rows = 1,
                                               .columns = 1,
                                               .row_labels = labels,
                                               .row_label_count = 1,
                                               .column_labels = labels,
                                               .column_label_count = 1,
                                               .panels = panels,
                                               .panel_count = 1};

typedef bool (*draw_format)(const struct attention_map *, struct attn_buffer *,
                            struct attn_error *);

struct drawing {
    draw_format draw;
    const struct attention_map *map;
};

static bool draw(void *user, struct attn_error *error)
{
    const struct drawing *drawing = user;
    struct attn_buffer out = {0};
    bool drawn = drawing->draw(drawing->map, &out, error);
    attn_buffer_release(&out);
    return drawn;
}

static bool draw_curve(void *user, struct attn_error *error)
{
    (void)user;
    static const double numbers[] = {3, 1, 2};
    static const struct curve_series series = {"training", 3, numbers, numbers};
    static const struct curve curve = {"title", "step", "loss", &series, 1};
    struct attn_buffer out = {0};
    bool drawn = curve_svg(&curve, &out, error);
    attn_buffer_release(&out);
    return drawn;
}

static void a_curve_reports_a_failed_allocation(void **state)
{
    (void)state;
    assert_true(allocation_sweep(draw_curve, NULL) > 0);
}

static void every_format_reports_a_failed_allocation(void **state)
{
    (void)state;
    struct drawing drawings[] = {{draw_svg, &map},
                                 {draw_html, &map},
                                 {draw_page_data, &map},
                                 {draw_json, &map},
                                 {draw_npy, &map}};
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++)
        assert_true(allocation_sweep(draw, &drawings[i]) > 0);
}

static bool draw_form(void *user, struct attn_error *error)
{
    (void)user;
    struct attn_buffer out = {0};
    bool drawn = draw_page_form("model", &out, error);
    attn_buffer_release(&out);
    return drawn;
}

static void the_form_reports_a_failed_allocation(void **state)
{
    (void)state;
    assert_true(allocation_sweep(draw_form, NULL) > 0);
}

static void png_reports_a_failed_allocation(void **state)
{
    (void)state;
    struct drawing drawing = {draw_png, &small_map};
    struct attn_error error;
    if (!draw(&drawing, &error))
        skip_because(error.message);
    assert_true(allocation_sweep(draw, &drawing) > 0);
}

static bool rank(void *user, struct attn_error *error)
{
    (void)user;
    static const struct ranking_line lines[] = {{"a", 0.5f}, {"مرحبا", 0.25f}};
    struct attn_buffer out = {0};
    draw_ranking(lines, 2, 0.5f, 2, TERMINAL_COLOR, &out);
    bool ranked = !out.failed || attn_error_memory(error);
    attn_buffer_release(&out);
    return ranked;
}

static void a_ranking_remembers_a_failed_allocation(void **state)
{
    (void)state;
    assert_true(allocation_sweep(rank, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_reports_a_failed_allocation),
        cmocka_unit_test(the_form_reports_a_failed_allocation),
        cmocka_unit_test(a_curve_reports_a_failed_allocation),
        cmocka_unit_test(png_reports_a_failed_allocation),
        cmocka_unit_test(a_ranking_remembers_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
