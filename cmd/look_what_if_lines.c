/* What a change does, as lines for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/label.h"
#include "look_what_if_report.h"
#include "output.h"

enum { INDENT = 2 };

static void add_bold(bool on, struct attn_buffer *out)
{
    if (output_has_color())
        attn_buffer_add_text(out, on ? "\x1b[1m" : "\x1b[0m");
}

static void add_heading(const char *text, size_t width, struct attn_buffer *out)
{
    add_bold(true, out);
    attn_buffer_format(out, "%-*s", (int)width, text);
    add_bold(false, out);
}

/* ", " between, " and " before the last. */
static void add_separator(size_t index, size_t count, struct attn_buffer *out)
{
    if (index > 0)
        attn_buffer_add_text(out, index + 1 < count ? ", " : " and ");
}

static void add_quoted(const char *word, size_t size, struct attn_buffer *out)
{
    attn_buffer_add_text(out, "\"");
    label_show(word, size, out);
    attn_buffer_add_text(out, "\"");
}

/* "L4H7 and L5 were not there" */
static void add_ablations(const struct look_options *options, struct attn_buffer *out)
{
    for (size_t n = 0; n < options->ablated_count; n++) {
        add_separator(n, options->ablated_count, out);
        what_if_add_head(&options->ablated[n], out);
    }
    attn_buffer_add_text(out, " were not there");
}

/* "\"it\" did not see \"robot\" in L4H7" */
static void add_cuts(const struct look_options *options, const struct look_what_if *what_if,
                     struct attn_buffer *out)
{
    for (size_t n = 0; n < options->cut_count; n++) {
        const char *cut = options->cuts[n];
        const size_t size = what_if->query_sizes[n];
        add_separator(n, options->cut_count, out);
        add_quoted(cut, size, out);
        attn_buffer_add_text(out, " did not see ");
        add_quoted(cut + size + 1, strlen(cut + size + 1), out);
    }
    if (options->heads[0].layer == LOOK_MEAN)
        return;
    attn_buffer_add_text(out, " in ");
    for (size_t n = 0; n < options->head_count; n++) {
        add_separator(n, options->head_count, out);
        what_if_add_head(&options->heads[n], out);
    }
}

void look_what_if_tell(const struct look_options *options, const struct look_what_if *what_if,
                       struct attn_buffer *out)
{
    if (options->ablated_count > 0)
        add_ablations(options, out);
    if (options->ablated_count > 0 && options->cut_count > 0)
        attn_buffer_add_text(out, ", and ");
    if (options->cut_count > 0)
        add_cuts(options, what_if, out);
}

static void add_question(const struct what_if_report *report, struct attn_buffer *out)
{
    add_bold(true, out);
    attn_buffer_add_text(out, "what if ");
    look_what_if_tell(report->options, report->what_if, out);
    add_bold(false, out);
    attn_buffer_add_text(out, "\n");
}

/* Appends a label of at most LABEL_COLUMNS columns; pieces of byte pairs with quotes, since a space
 * is part of them. */
static void add_label(const struct what_if_report *report, int32_t id, struct attn_buffer *out)
{
    const struct tokenizer *tokenizer = report->session->tokenizer;
    const bool quotes = tokenizer_get_kind(tokenizer) == TOKENIZER_BYTE_PAIR;
    struct attn_buffer word = {0}, shown = {0};
    what_if_add_word(tokenizer, id, &word);
    label_show(word.data ? word.data : "", word.size, &shown);
    attn_buffer_add_text(out, quotes ? "\"" : "");
    label_cut(shown.data ? shown.data : "", shown.size, LABEL_COLUMNS, out);
    attn_buffer_add_text(out, quotes ? "\"" : "");
    out->failed = out->failed || word.failed || shown.failed;
    attn_buffer_release(&word);
    attn_buffer_release(&shown);
}

/* What was added behind `begin`, indented and padded to `width` columns. */
static void add_cell(const char *shown, size_t size, size_t width, struct attn_buffer *out)
{
    const size_t columns = label_width(shown, size);
    attn_buffer_format(out, "%*s", INDENT, "");
    attn_buffer_add(out, shown, size);
    if (columns < width)
        attn_buffer_format(out, "%*s", (int)(width - columns), "");
}

/* A small one by its magnitude, so that it can be told from nothing. */
static void add_distance(double distance, struct attn_buffer *out)
{
    const bool small = distance != 0 && fabs(distance) < 0.0005;
    attn_buffer_format(out, small ? "%.1e" : "%.4f", distance);
}

/* A change of less than half of the last decimal has no sign. */
static void add_change(double change, struct attn_buffer *out)
{
    const char *sign = fabs(change) < 0.0005 ? " " : change < 0 ? "\xe2\x88\x92" : "+";
    attn_buffer_format(out, "  %s%.3f\n", sign, fabs(change));
}

static void add_words(const struct what_if_report *report, const struct what_if_place *place,
                      const char *title, struct attn_buffer *out)
{
    struct attn_buffer label = {0};
    size_t width = strlen(title) - INDENT;
    for (size_t n = 0; n < place->word_count; n++) {
        attn_buffer_clear(&label);
        add_label(report, place->words[n].id, &label);
        const size_t columns = label.data ? label_width(label.data, label.size) : 0;
        width = columns > width ? columns : width;
    }
    add_heading(title, width + INDENT, out);
    attn_buffer_add_text(out, "  before   after  change\n");
    for (size_t n = 0; n < place->word_count; n++) {
        const struct what_if_word *word = &place->words[n];
        attn_buffer_clear(&label);
        add_label(report, word->id, &label);
        add_cell(label.data ? label.data : "", label.size, width, out);
        attn_buffer_format(out, "%8.3f%8.3f", word->before, word->after);
        add_change(word->after - word->before, out);
    }
    attn_buffer_format(out, "%*sdivergence ", INDENT, "");
    add_distance(place->divergence, out);
    attn_buffer_add_text(out, " nats\n");
    out->failed = out->failed || label.failed;
    attn_buffer_release(&label);
}

static void add_places(const struct what_if_report *report, struct attn_buffer *out)
{
    const struct what_if_effects *effects = &report->effects;
    for (size_t n = 0; n < effects->place_count; n++) {
        char title[64] = "the next word";
        if (effects->places[n].token != WHAT_IF_NEXT)
            snprintf(title, sizeof title,
                     effects->place_count > 1 ? "the word at [MASK] %zu" : "the word at [MASK]",
                     n + 1);
        attn_buffer_add_text(out, "\n");
        add_words(report, &effects->places[n], title, out);
    }
}

static void add_moves(const struct what_if_report *report, struct attn_buffer *out)
{
    struct attn_buffer shown = {0}, label = {0};
    size_t width = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t n = 0; n < report->move_count; n++) {
            const char *name = report->labels->units[report->moves[n].unit];
            attn_buffer_clear(&shown);
            attn_buffer_clear(&label);
            label_show(name, strlen(name), &shown);
            label_cut(shown.data ? shown.data : "", shown.size, LABEL_COLUMNS, &label);
            const size_t columns = label.data ? label_width(label.data, label.size) : 0;
            width = columns > width ? columns : width;
            if (pass == 0)
                continue;
            add_cell(label.data ? label.data : "", label.size, width, out);
            attn_buffer_add_text(out, "  ");
            add_distance(report->moves[n].distance, out);
            attn_buffer_add_text(out, "\n");
        }
    out->failed = out->failed || shown.failed || label.failed;
    attn_buffer_release(&shown);
    attn_buffer_release(&label);
}

void what_if_report_lines(const struct what_if_report *report, struct attn_buffer *out)
{
    add_question(report, out);
    if (report->lacks_head)
        attn_buffer_add_text(out, "the model has no masked-word head: it tells no word for "
                                  "[MASK]\n");
    add_places(report, out);
    if (!report->effects.has_embedding)
        return;
    attn_buffer_add_text(out, "\n");
    add_heading("the embedding", 0, out);
    attn_buffer_add_text(out, " moves by ");
    add_distance(report->effects.embedding_distance, out);
    attn_buffer_add_text(out, " (1 \xe2\x88\x92 cos)\n");
    if (report->move_count == 0)
        return;
    add_heading("the words that move most", 0, out);
    attn_buffer_add_text(out, "\n");
    add_moves(report, out);
}
