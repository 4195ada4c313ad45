#include "draw/page_data.h"

#include <string.h>

#include "draw/color_scale.h"
#include "draw/page_label.h"
#include "draw/page_vectors.h"
#include "draw/page_weights.h"

enum {
    FEW_LINKS = 16,                /* a row, of which a large page has no more */
    RESERVE = 256,                 /* what the names and numbers written last may add */
    VECTORS_BESIDE_LINKS = 1200000 /* bytes of vectors that may take the place of links */
};

/* What of a map its page holds. */
struct page_choice {
    size_t strongest; /* 0: all weights */
    bool has_vectors;
};

static void add_flag(const char *name, bool value, struct attn_buffer *out)
{
    attn_buffer_format(out, ",\n\"%s\": %s", name, value ? "true" : "false");
}

static void add_special(const char *name, const bool *is_special, size_t count,
                        struct attn_buffer *out)
{
    attn_buffer_format(out, ",\n\"%s\": [", name);
    const char *comma = "";
    for (size_t i = 0; is_special && i < count; i++) {
        if (!is_special[i])
            continue;
        attn_buffer_format(out, "%s%zu", comma, i);
        comma = ",";
    }
    attn_buffer_add_text(out, "]");
}

static void add_panels(const struct attention_map *map, struct attn_buffer *out)
{
    attn_buffer_add_text(out, ",\n\"panels\": [");
    for (size_t i = 0; i < map->panel_count; i++) {
        attn_buffer_format(out, "%s{\"layer\": %d, \"head\": %d}", i ? ", " : "",
                           map->panels[i].layer, map->panels[i].head);
    }
    attn_buffer_add_text(out, "]");
}

static void add_scale(const char *name, const struct color_scale *scale, struct attn_buffer *out)
{
    attn_buffer_format(out, ",\n\"%s\": \"", name);
    for (int level = 0; level <= COLOR_NOT_A_NUMBER; level++) {
        struct color color = scale->level[level];
        attn_buffer_format(out, "%02x%02x%02x", color.red, color.green, color.blue);
    }
    attn_buffer_add_text(out, "\"");
}

static void add_colors(struct attn_buffer *out)
{
    struct color_scale scale;
    color_scale_on_white(&scale);
    add_scale("light", &scale, out);
    color_scale_on_dark(&scale);
    add_scale("dark", &scale, out);
}

/* All but weights and vectors. */
static void add_description(const struct attention_map *map, const struct map_range *range,
                            struct attn_buffer *out)
{
    attn_buffer_add_text(out, "{\"model\": ");
    if (map->model && map->model[0])
        page_text_add(map->model, strlen(map->model), out);
    else
        attn_buffer_add_text(out, "\"\"");
    attn_buffer_add_text(out, ",\n\"text\": ");
    page_text_add(map->text, map->text_size, out);
    attn_buffer_add_text(out, ",\n\"pair\": ");
    page_text_add(map->pair, map->pair_size, out);
    attn_buffer_add_text(out, ",\n\"measure\": ");
    page_text_add(map->measure, map->measure ? strlen(map->measure) : 0, out);
    add_flag("renormalized", map->renormalized, out);
    attn_buffer_add_text(out, ",\n\"rows\": ");
    page_labels_add(map->row_labels, map->rows, out);
    attn_buffer_add_text(out, ",\n\"columns\": ");
    if (map_has_own_columns(map))
        page_labels_add(map->column_labels, map->columns, out);
    else
        attn_buffer_add_text(out, "null");
    add_special("rowSpecial", map->row_is_special, map->rows, out);
    add_special("columnSpecial", map->column_is_special, map->columns, out);
    add_panels(map, out);
    attn_buffer_add_text(out, ",\n\"largest\": ");
    attn_buffer_add_json_float(out, range->largest);
    add_flag("hasNotANumber", range->has_not_a_number, out);
    add_colors(out);
}

/* The vectors' object, where it has at most `budget` bytes; else nothing. */
static bool make_vectors(const struct attention_map *map, size_t budget, struct attn_buffer *object,
                         struct attn_error *error)
{
    if (!map->vectors || page_vectors_codes_size(map->vectors) > budget)
        return true;
    page_vectors_add(map, object);
    if (object->failed)
        return attn_error_memory(error);
    if (object->size > budget)
        attn_buffer_clear(object);
    return true;
}

static bool choose_links(const struct attention_map *map, size_t budget, size_t vectors,
                         struct page_choice *choice, struct attn_error *error)
{
    struct page_links links;
    page_links_count(map, FEW_LINKS, &links);
    size_t least = page_links_size(&links, 1);
    if (least > budget)
        return attn_error_set(error,
                              "the page's data would have about %.1f MB even with one link a row, "
                              "%.1f are the most: choose fewer heads or a shorter text",
                              (double)least / 1e6, (double)budget / 1e6);
    choice->has_vectors = vectors && vectors <= VECTORS_BESIDE_LINKS && vectors <= budget - least;
    if (choice->has_vectors)
        budget -= vectors;
    choice->strongest = page_links_fit(&links, budget);
    if (choice->strongest < FEW_LINKS)
        return true;
    page_links_count(map, STRONGEST_LIMIT, &links);
    choice->strongest = page_links_fit(&links, budget);
    return true;
}

/* Whole weights go before vectors, vectors that are not too many before links. */
static bool choose(const struct attention_map *map, size_t budget, size_t vectors,
                   struct page_choice *choice, struct attn_error *error)
{
    size_t whole = page_weights_whole_size(map);
    if (whole > budget)
        return choose_links(map, budget, vectors, choice, error);
    *choice = (struct page_choice){.has_vectors = vectors && vectors <= budget - whole};
    return true;
}

static bool add_chosen(const struct attention_map *map, const struct map_range *range,
                       const struct page_choice *choice, const struct attn_buffer *vectors,
                       struct attn_buffer *out, struct attn_error *error)
{
    double share;
    attn_buffer_format(out, ",\n\"strongest\": %zu,\n\"weights\": \"", choice->strongest);
    page_weights_add(map, choice->strongest, range->largest, out, &share);
    attn_buffer_add_text(out, "\",\n\"share\": ");
    attn_buffer_add_json_float(out, (float)share);
    add_flag("vectorsLeftOut", map->vectors && !choice->has_vectors, out);
    attn_buffer_add_text(out, ",\n\"vectors\": ");
    if (choice->has_vectors)
        attn_buffer_add(out, vectors->data, vectors->size);
    else
        attn_buffer_add_text(out, "null");
    attn_buffer_add_text(out, "}");
    return !out->failed || attn_error_memory(error);
}

bool page_data_add(const struct attention_map *map, size_t budget, struct attn_buffer *out,
                   struct attn_error *error)
{
    if (!map_check_links(map, error) || !page_vectors_check(map, error))
        return false;
    if (map->columns > PAGE_COLUMN_LIMIT)
        return attn_error_set(error, "%zu columns are too many for a page, at most %d are shown",
                              map->columns, PAGE_COLUMN_LIMIT);
    size_t begin = out->size;
    struct map_range range = map_get_range(map);
    add_description(map, &range, out);
    if (out->failed)
        return attn_error_memory(error);
    size_t used = out->size - begin + RESERVE;
    size_t left = used < budget ? budget - used : 0;
    struct attn_buffer vectors = {0};
    struct page_choice choice = {0};
    bool added = make_vectors(map, left, &vectors, error) &&
                 choose(map, left, vectors.size, &choice, error) &&
                 add_chosen(map, &range, &choice, &vectors, out, error);
    attn_buffer_release(&vectors);
    return added;
}
