#include "heads_table.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset; /* in struct head_scores */
} columns[] = {
    {"entropy", offsetof(struct head_scores, entropy)},
    {"distance", offsetof(struct head_scores, distance)},
    {"self", offsetof(struct head_scores, self)},
    {"previous", offsetof(struct head_scores, previous)},
    {"next", offsetof(struct head_scores, next)},
    {"first", offsetof(struct head_scores, first)},
    {"separators", offsetof(struct head_scores, separators)},
    {"sink", offsetof(struct head_scores, sink)},
    {"duplicate", offsetof(struct head_scores, duplicate)},
    {"induction", offsetof(struct head_scores, induction)},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0], NAME_WIDTH = 6, NUMBER_WIDTH = 7 };

bool heads_column_find(const char *name, size_t *column)
{
    for (*column = 0; *column < COLUMN_COUNT; ++*column)
        if (strcmp(columns[*column].name, name) == 0)
            return true;
    return false;
}

static double value_of(const struct head_scores *scores, size_t column)
{
    double value;
    memcpy(&value, (const char *)scores + columns[column].offset, sizeof value);
    return value;
}

/* A head among those that are sorted. */
struct ranked {
    double value; /* what is larger comes first */
    size_t place;
};

/* NaN behind all numbers; of equal ones the earlier head first. */
static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *first = a, *second = b;
    const int first_open = isnan(first->value), second_open = isnan(second->value);
    if (first_open != second_open)
        return first_open - second_open;
    if (!first_open && first->value != second->value)
        return first->value > second->value ? -1 : 1;
    return first->place < second->place ? -1 : first->place > second->place;
}

size_t *heads_order(const struct heads_options *options, const struct head_survey *survey,
                    size_t *count)
{
    const bool all = options->layer == HEADS_ALL_LAYERS;
    const size_t heads = (size_t)survey->heads;
    const size_t first = all ? 0 : (size_t)options->layer * heads;
    *count = all ? (size_t)survey->layers * heads : heads;
    size_t *order = calloc(*count, sizeof *order);
    struct ranked *ranked = calloc(*count, sizeof *ranked);
    for (size_t n = 0; order && ranked && n < *count; n++) {
        const double value =
            options->sort ? value_of(&survey->scores[first + n], options->sort_column) : 0.0;
        ranked[n] = (struct ranked){options->smallest_first ? -value : value, first + n};
    }
    if (order && ranked) {
        qsort(ranked, *count, sizeof *ranked, compare_ranked);
        for (size_t n = 0; n < *count; n++)
            order[n] = ranked[n].place;
    } else {
        free(order);
        order = NULL;
    }
    free(ranked);
    return order;
}

static size_t width_of(size_t column)
{
    const size_t length = strlen(columns[column].name);
    return length > NUMBER_WIDTH ? length : NUMBER_WIDTH;
}

static void add_table(const struct heads_report *report, struct attn_buffer *out)
{
    const int64_t heads = report->survey->heads;
    heads_add_left("head", NAME_WIDTH, out);
    for (size_t column = 0; column < COLUMN_COUNT; column++)
        heads_add_right(columns[column].name, width_of(column), out);
    attn_buffer_add_text(out, "\n");
    for (size_t n = 0; n < report->count; n++) {
        const int64_t place = (int64_t)report->order[n];
        char text[64];
        snprintf(text, sizeof text, "L%lldH%lld", (long long)(place / heads),
                 (long long)(place % heads));
        heads_add_left(text, NAME_WIDTH, out);
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            const double value = value_of(&report->survey->scores[place], column);
            snprintf(text, sizeof text, "%.3f", value);
            heads_add_right(isnan(value) ? "–" : text, width_of(column), out);
        }
        attn_buffer_add_text(out, "\n");
    }
}

static void add_csv(const struct heads_report *report, struct attn_buffer *out)
{
    const int64_t heads = report->survey->heads;
    attn_buffer_add_text(out, "layer,head");
    for (size_t column = 0; column < COLUMN_COUNT; column++)
        attn_buffer_format(out, ",%s", columns[column].name);
    attn_buffer_add_text(out, "\n");
    for (size_t n = 0; n < report->count; n++) {
        const int64_t place = (int64_t)report->order[n];
        attn_buffer_format(out, "%lld,%lld", (long long)(place / heads),
                           (long long)(place % heads));
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            const double value = value_of(&report->survey->scores[place], column);
            attn_buffer_add_text(out, ",");
            if (!isnan(value))
                attn_buffer_add_json_float(out, (float)value);
        }
        attn_buffer_add_text(out, "\n");
    }
}

static void add_json(const struct heads_report *report, struct attn_buffer *out)
{
    const struct head_survey *survey = report->survey;
    const struct heads_options *options = report->options;
    attn_buffer_add_text(out, "{\"model\": ");
    attn_buffer_add_json_string(out, report->model, strlen(report->model));
    if (options->source == HEADS_REPEAT)
        attn_buffer_format(out, ", \"repeat\": %lld, \"seed\": %llu", (long long)options->repeat,
                           (unsigned long long)options->seed);
    attn_buffer_format(out, ", \"texts\": %lld, \"tokens\": %lld, \"heads\": [",
                       (long long)survey->texts, (long long)survey->rows);
    for (size_t n = 0; n < report->count; n++) {
        const int64_t place = (int64_t)report->order[n];
        attn_buffer_format(out, "%s\n  {\"layer\": %lld, \"head\": %lld", n > 0 ? "," : "",
                           (long long)(place / survey->heads), (long long)(place % survey->heads));
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            attn_buffer_format(out, ", \"%s\": ", columns[column].name);
            attn_buffer_add_json_float(out, (float)value_of(&survey->scores[place], column));
        }
        attn_buffer_add_text(out, "}");
    }
    attn_buffer_add_text(out, "\n]}\n");
}

void heads_table_render(const void *report, enum heads_form form, struct attn_buffer *out)
{
    if (form == HEADS_JSON)
        add_json(report, out);
    else if (form == HEADS_CSV)
        add_csv(report, out);
    else
        add_table(report, out);
}
