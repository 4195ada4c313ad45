#include "draw/attention_map.h"

#include <string.h>

#include "draw/label.h"
#include "draw/markup.h"
#include "draw/page_assets.h"
#include "draw/page_data.h"

enum { PAGE_LIMIT = 3000000 }; /* bytes that a page stays below */

/* What page.html's {{names}} stand for, but for the data. */
struct page {
    const char *model; /* NULL or empty for none */
    bool asks;         /* for a text, of where it came from */
};

static void add_title(const struct page *page, struct attn_buffer *out)
{
    struct attn_buffer model = {0};
    attn_buffer_add_text(out, "Attention");
    if (page->model && page->model[0]) {
        attn_buffer_add_text(out, " in ");
        label_show(page->model, strlen(page->model), &model);
        if (model.failed)
            out->failed = true;
        else
            markup_add_text(out, model.data);
    }
    attn_buffer_release(&model);
}

/* All scripts share one function, so that two pages in one document keep their names apart. A page
 * that asks for nothing has no code that could. */
static void add_scripts(const struct page *page, struct attn_buffer *out)
{
    attn_buffer_add_text(out, "(() => {\n\"use strict\";\n");
    if (page->asks)
        attn_buffer_add_text(out, form_js);
    attn_buffer_add_text(out, page_js);
    attn_buffer_add_text(out, "})();\n");
}

static void add_policy(const struct page *page, struct attn_buffer *out)
{
    attn_buffer_add_text(out,
                         "default-src 'none'; script-src 'unsafe-inline'; style-src "
                         "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'");
    if (page->asks)
        attn_buffer_add_text(out, "; connect-src 'self'");
}

static bool is_part(const char *name, size_t size, const char *part)
{
    return strlen(part) == size && !memcmp(name, part, size);
}

static void add_part(const struct page *page, const char *name, size_t size,
                     struct attn_buffer *out)
{
    if (is_part(name, size, "title"))
        add_title(page, out);
    else if (is_part(name, size, "policy"))
        add_policy(page, out);
    else if (is_part(name, size, "style"))
        attn_buffer_add_text(out, page_css);
    else if (is_part(name, size, "ask"))
        attn_buffer_add_text(out, page->asks ? "data-ask" : "");
    else if (is_part(name, size, "script"))
        add_scripts(page, out);
}

/* Copies a piece of page.html, {{names}} replaced by the parts that they name. */
static void add_frame(const struct page *page, const char *at, const char *end,
                      struct attn_buffer *out)
{
    for (const char *open; (open = strstr(at, "{{")) != NULL && open < end;) {
        const char *close = strstr(open, "}}");
        attn_buffer_add(out, at, (size_t)(open - at));
        add_part(page, open + 2, (size_t)(close - open) - 2, out);
        at = close + 2;
    }
    attn_buffer_add(out, at, (size_t)(end - at));
}

/* A file in pieces, since how much data it may hold depends on all the rest. */
struct page_file {
    struct attn_buffer before, data, after;
};

static void page_file_release(struct page_file *file)
{
    attn_buffer_release(&file->before);
    attn_buffer_release(&file->data);
    attn_buffer_release(&file->after);
}

static bool make_frame(const struct page *page, struct page_file *file, struct attn_error *error)
{
    static const char data_part[] = "{{data}}";
    const char *data = strstr(page_html, data_part);
    add_frame(page, page_html, data, &file->before);
    add_frame(page, data + strlen(data_part), page_html + strlen(page_html), &file->after);
    return (!file->before.failed && !file->after.failed) || attn_error_memory(error);
}

static bool make_file(const struct attention_map *map, struct page_file *file,
                      struct attn_error *error)
{
    const struct page page = {.model = map->model};
    if (!make_frame(&page, file, error))
        return false;
    size_t frame = file->before.size + file->after.size;
    return page_data_add(map, frame < PAGE_LIMIT ? PAGE_LIMIT - 1 - frame : 0, &file->data, error);
}

static bool append(const struct attn_buffer *const *pieces, size_t count, struct attn_buffer *out,
                   struct attn_error *error)
{
    for (size_t i = 0; i < count; i++)
        attn_buffer_add(out, pieces[i]->data, pieces[i]->size);
    return !out->failed || attn_error_memory(error);
}

bool draw_html(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    struct page_file file = {0};
    const struct attn_buffer *const pieces[] = {&file.before, &file.data, &file.after};
    bool drawn = make_file(map, &file, error) && append(pieces, 3, out, error);
    page_file_release(&file);
    return drawn;
}

bool draw_page_data(const struct attention_map *map, struct attn_buffer *out,
                    struct attn_error *error)
{
    struct page_file file = {0};
    const struct attn_buffer *const pieces[] = {&file.data};
    bool drawn = make_file(map, &file, error) && append(pieces, 1, out, error);
    page_file_release(&file);
    return drawn;
}

bool draw_page_form(const char *model, struct attn_buffer *out, struct attn_error *error)
{
    struct page_file file = {0};
    const struct page page = {.model = model, .asks = true};
    const struct attn_buffer *const pieces[] = {&file.before, &file.data, &file.after};
    bool drawn = make_frame(&page, &file, error);
    if (drawn) {
        attn_buffer_add_text(&file.data, "null");
        drawn = (!file.data.failed || attn_error_memory(error)) && append(pieces, 3, out, error);
    }
    page_file_release(&file);
    return drawn;
}
