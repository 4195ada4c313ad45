#include "draw/attention_map.h"

#include <string.h>

#include "draw/color_scale.h"
#include "draw/label.h"
#include "draw/map_check.h"
#include "draw/markup.h"
#include "draw/page_assets.h"
#include "draw/page_weights.h"

enum {
    PAGE_LIMIT = 3000000, /* bytes that a page stays below */
    PAGE_RESERVE = 256    /* what the numbers known last may add to a page without weights */
};

struct page {
    const struct attention_map *map;
    struct map_range range;
    const struct page_weights *weights; /* NULL: a page without them, to learn its size */
    struct attn_buffer *scratch;
};

static void add_shown(struct page *page, const char *text, size_t size, struct attn_buffer *out)
{
    attn_buffer_clear(page->scratch);
    label_show(text, size, page->scratch);
    if (page->scratch->failed)
        out->failed = true;
    else
        markup_add_text(out, page->scratch->data);
}

static void add_title(struct page *page, struct attn_buffer *out)
{
    attn_buffer_add_text(out, "Attention");
    if (page->map->model && page->map->model[0]) {
        attn_buffer_add_text(out, " in ");
        add_shown(page, page->map->model, strlen(page->map->model), out);
    }
}

static void add_texts(struct page *page, struct attn_buffer *out)
{
    const struct attention_map *map = page->map;
    const struct {
        const char *text;
        size_t size;
    } texts[] = {{map->text, map->text_size}, {map->pair, map->pair_size}};
    for (size_t i = 0; i < 2; i++) {
        if (!texts[i].text)
            continue;
        attn_buffer_add_text(out, "<p class=\"text\" dir=\"auto\">");
        add_shown(page, texts[i].text, texts[i].size, out);
        attn_buffer_add_text(out, "</p>\n");
    }
}

static void add_labels(struct page *page, const char *const *labels, size_t count,
                       struct attn_buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        attn_buffer_add_text(out, "<li><bdi>");
        add_shown(page, labels[i], strlen(labels[i]), out);
        attn_buffer_add_text(out, "</bdi></li>\n");
    }
}

/* All colours of a scale as one string of six hexadecimal digits each. */
static void add_scale(const char *name, const struct color_scale *scale, struct attn_buffer *out)
{
    attn_buffer_format(out, "\"%s\": \"", name);
    for (int level = 0; level <= COLOR_NOT_A_NUMBER; level++) {
        struct color color = scale->level[level];
        attn_buffer_format(out, "%02x%02x%02x", color.red, color.green, color.blue);
    }
    attn_buffer_add_text(out, "\", ");
}

static void add_panels(const struct attention_map *map, struct attn_buffer *out)
{
    attn_buffer_add_text(out, "\"panels\": [");
    for (size_t i = 0; i < map->panel_count; i++) {
        char title[64];
        draw_panel_title(&map->panels[i], title, sizeof title);
        attn_buffer_format(out, "%s{\"layer\": %d, \"head\": %d, \"title\": ", i ? ", " : "",
                           map->panels[i].layer, map->panels[i].head);
        attn_buffer_add_json_string(out, title, strlen(title));
        attn_buffer_add_text(out, "}");
    }
    attn_buffer_add_text(out, "], ");
}

static void add_data(struct page *page, struct attn_buffer *out)
{
    const struct attention_map *map = page->map;
    struct color_scale scale;
    attn_buffer_format(out, "{\"rows\": %zu, \"columns\": %zu, ", map->rows, map->columns);
    add_panels(map, out);
    color_scale_on_white(&scale);
    add_scale("light", &scale, out);
    color_scale_on_dark(&scale);
    add_scale("dark", &scale, out);
    attn_buffer_format(out, "\"hasNotANumber\": %s, \"largest\": ",
                       page->range.has_not_a_number ? "true" : "false");
    attn_buffer_add_json_float(out, page->range.largest);
    attn_buffer_add_text(out, ", \"weights\": \"");
    double share = 1;
    if (page->weights)
        page_weights_add(map, page->weights, page->range.largest, out, &share);
    attn_buffer_format(
        out, "\", \"strongest\": %zu, \"share\": ", page->weights ? page->weights->strongest : 0);
    attn_buffer_add_json_float(out, (float)share);
    attn_buffer_add_text(out, "}");
}

static void add_part(struct page *page, const char *name, size_t size, struct attn_buffer *out)
{
    const struct attention_map *map = page->map;
    if (!strncmp(name, "title", size))
        add_title(page, out);
    else if (!strncmp(name, "style", size))
        attn_buffer_add_text(out, page_css);
    else if (!strncmp(name, "texts", size))
        add_texts(page, out);
    else if (!strncmp(name, "rows", size))
        add_labels(page, map->row_labels, map->rows, out);
    else if (!strncmp(name, "columns", size))
        add_labels(page, map->column_labels, map->columns, out);
    else if (!strncmp(name, "data", size))
        add_data(page, out);
    else if (!strncmp(name, "script", size))
        attn_buffer_add_text(out, page_js);
}

/* Copies page.html, {{names}} replaced by the parts that they name. */
static void add_page(struct page *page, struct attn_buffer *out)
{
    const char *at = page_html;
    for (const char *open; (open = strstr(at, "{{")) != NULL;) {
        const char *close = strstr(open, "}}");
        attn_buffer_add(out, at, (size_t)(open - at));
        add_part(page, open + 2, (size_t)(close - open) - 2, out);
        at = close + 2;
    }
    attn_buffer_add_text(out, at);
}

/* The size of the page but for its weights; 0 when there is no memory. */
static size_t measure_frame(struct page *page)
{
    struct attn_buffer frame = {0};
    add_page(page, &frame);
    size_t size = frame.failed ? 0 : frame.size;
    attn_buffer_release(&frame);
    return size;
}

static bool write_page(struct page *page, struct attn_buffer *out, struct attn_error *error)
{
    struct page_weights plan;
    size_t frame = measure_frame(page);
    if (!frame)
        return attn_error_memory(error);
    frame += PAGE_RESERVE;
    size_t budget = frame < PAGE_LIMIT ? PAGE_LIMIT - frame : 0;
    if (!page_weights_plan(page->map, budget, &plan)) {
        double size = (double)frame + (double)page_weights_text_size(plan.bytes);
        return attn_error_set(error,
                              "the page would have about %.1f MB even with the strongest weight of "
                              "each row alone, at most %.1f are written: choose fewer heads or a "
                              "shorter text",
                              size / 1e6, PAGE_LIMIT / 1e6);
    }
    page->weights = &plan;
    add_page(page, out);
    return !out->failed || attn_error_memory(error);
}

bool draw_html(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    if (!map_check(map, error))
        return false;
    struct attn_buffer scratch = {0};
    struct page page = {.map = map, .range = map_get_range(map), .scratch = &scratch};
    bool written = write_page(&page, out, error);
    attn_buffer_release(&scratch);
    return written;
}
