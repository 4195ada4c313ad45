/* The dependencies that heads find, as a table, CSV or JSON. */
#include <stdio.h>
#include <string.h>

#include "heads_eval.h"

enum { HEAD_WIDTH = 6, NUMBER_WIDTH = 8, DIRECTION_WIDTH = 9 };

/* A place in `correct`. */
struct place {
    long long layer, head;
    enum dependency_direction direction;
};

static struct place place_of(const struct dependency_scores *scores, size_t n)
{
    const size_t heads = (size_t)scores->heads;
    return (struct place){(long long)(n / DEPENDENCY_DIRECTIONS / heads),
                          (long long)(n / DEPENDENCY_DIRECTIONS % heads),
                          n % DEPENDENCY_DIRECTIONS == DEPENDENCY_TO_HEAD
                              ? DEPENDENCY_TO_HEAD
                              : DEPENDENCY_TO_DEPENDENT};
}

static const char *name_of(const struct dependency_relation *relation)
{
    return relation->name ? relation->name : "all";
}

static double share(size_t correct, size_t words)
{
    return (double)correct / (double)words;
}

static void add_row(const struct heads_eval_report *report,
                    const struct dependency_relation *relation, size_t name_width,
                    struct attn_buffer *out)
{
    const size_t best =
        dependency_best(report->scores, relation, report->first_layer, report->last_layer);
    const struct place place = place_of(report->scores, best);
    char text[64];
    heads_add_left(name_of(relation), name_width, out);
    snprintf(text, sizeof text, "%zu", relation->words);
    heads_add_right(text, NUMBER_WIDTH, out);
    snprintf(text, sizeof text, "L%lldH%lld", place.layer, place.head);
    heads_add_right(text, HEAD_WIDTH, out);
    heads_add_right(place.direction == DEPENDENCY_TO_HEAD ? "dep→head" : "head→dep",
                    DIRECTION_WIDTH, out);
    snprintf(text, sizeof text, "%.1f%%", 100.0 * share(relation->correct[best], relation->words));
    heads_add_right(text, NUMBER_WIDTH, out);
    snprintf(text, sizeof text, "%.1f%%", 100.0 * share(relation->offset_correct, relation->words));
    heads_add_right(text, NUMBER_WIDTH, out);
    snprintf(text, sizeof text, "%+d", relation->offset);
    heads_add_right(text, NUMBER_WIDTH, out);
    attn_buffer_add_text(out, "\n");
}

static void add_table(const struct heads_eval_report *report, struct attn_buffer *out)
{
    const struct dependency_scores *scores = report->scores;
    size_t name_width = strlen("relation");
    for (size_t n = 0; n < scores->relation_count; n++) {
        const size_t length = strlen(name_of(&scores->relations[n]));
        name_width = length > name_width ? length : name_width;
    }
    heads_add_left("relation", name_width, out);
    heads_add_right("words", NUMBER_WIDTH, out);
    heads_add_right("head", HEAD_WIDTH, out);
    heads_add_right("direction", DIRECTION_WIDTH, out);
    heads_add_right("found", NUMBER_WIDTH, out);
    heads_add_right("baseline", NUMBER_WIDTH, out);
    heads_add_right("offset", NUMBER_WIDTH, out);
    attn_buffer_add_text(out, "\n");
    for (size_t n = 0; n < scores->relation_count; n++)
        add_row(report, &scores->relations[n], name_width, out);
}

/* In `correct`, the first place of the layers that are told of, and the one behind the last. */
static void limits(const struct heads_eval_report *report, size_t *first, size_t *behind)
{
    const size_t a_layer = (size_t)report->scores->heads * DEPENDENCY_DIRECTIONS;
    *first = (size_t)report->first_layer * a_layer;
    *behind = ((size_t)report->last_layer + 1) * a_layer;
}

static const char *direction_name(enum dependency_direction direction)
{
    return direction == DEPENDENCY_TO_HEAD ? "dependent-to-head" : "head-to-dependent";
}

static void add_share(size_t correct, size_t words, struct attn_buffer *out)
{
    attn_buffer_add_json_float(out, (float)share(correct, words));
}

/* A relation is visible ASCII and may hold signs that CSV must quote. */
static void add_quoted(const char *text, struct attn_buffer *out)
{
    if (!strpbrk(text, "\",")) {
        attn_buffer_add_text(out, text);
        return;
    }
    attn_buffer_add_text(out, "\"");
    for (; *text; text++)
        attn_buffer_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    attn_buffer_add_text(out, "\"");
}

static void add_csv(const struct heads_eval_report *report, struct attn_buffer *out)
{
    const struct dependency_scores *scores = report->scores;
    size_t first, behind;
    limits(report, &first, &behind);
    attn_buffer_add_text(out, "relation,words,layer,head,direction,correct,accuracy,"
                              "baseline_offset,baseline_correct,baseline_accuracy\n");
    for (size_t r = 0; r < scores->relation_count; r++) {
        const struct dependency_relation *relation = &scores->relations[r];
        for (size_t n = first; n < behind; n++) {
            const struct place place = place_of(scores, n);
            add_quoted(name_of(relation), out);
            attn_buffer_format(out, ",%zu,%lld,%lld,%s,%zu,", relation->words, place.layer,
                               place.head, direction_name(place.direction), relation->correct[n]);
            add_share(relation->correct[n], relation->words, out);
            attn_buffer_format(out, ",%d,%zu,", relation->offset, relation->offset_correct);
            add_share(relation->offset_correct, relation->words, out);
            attn_buffer_add_text(out, "\n");
        }
    }
}

static void add_json_head(const struct dependency_scores *scores,
                          const struct dependency_relation *relation, size_t n,
                          struct attn_buffer *out)
{
    const struct place place = place_of(scores, n);
    attn_buffer_format(out,
                       "{\"layer\": %lld, \"head\": %lld, \"direction\": \"%s\", "
                       "\"correct\": %zu, \"accuracy\": ",
                       place.layer, place.head, direction_name(place.direction),
                       relation->correct[n]);
    add_share(relation->correct[n], relation->words, out);
    attn_buffer_add_text(out, "}");
}

static void add_json_relation(const struct heads_eval_report *report,
                              const struct dependency_relation *relation, struct attn_buffer *out)
{
    const struct dependency_scores *scores = report->scores;
    size_t first, behind;
    limits(report, &first, &behind);
    attn_buffer_add_text(out, "{\"relation\": ");
    attn_buffer_add_json_string(out, name_of(relation), strlen(name_of(relation)));
    attn_buffer_format(out,
                       ", \"words\": %zu, \"baseline\": {\"offset\": %d, \"correct\": %zu, "
                       "\"accuracy\": ",
                       relation->words, relation->offset, relation->offset_correct);
    add_share(relation->offset_correct, relation->words, out);
    attn_buffer_add_text(out, "},\n   \"best\": ");
    add_json_head(scores, relation,
                  dependency_best(scores, relation, report->first_layer, report->last_layer), out);
    attn_buffer_add_text(out, ",\n   \"heads\": [");
    for (size_t n = first; n < behind; n++) {
        attn_buffer_add_text(out, n > first ? ",\n    " : "\n    ");
        add_json_head(scores, relation, n, out);
    }
    attn_buffer_add_text(out, "]}");
}

static void add_json(const struct heads_eval_report *report, struct attn_buffer *out)
{
    const struct dependency_scores *scores = report->scores;
    attn_buffer_add_text(out, "{\"model\": ");
    attn_buffer_add_json_string(out, report->model, strlen(report->model));
    attn_buffer_format(out, ", \"sentences\": %zu, \"words\": %zu, \"relations\": [",
                       report->treebank->sentence_count, report->treebank->word_count);
    for (size_t n = 0; n < scores->relation_count; n++) {
        attn_buffer_add_text(out, n > 0 ? ",\n  " : "\n  ");
        add_json_relation(report, &scores->relations[n], out);
    }
    attn_buffer_add_text(out, "\n]}\n");
}

void heads_eval_render(const void *report, enum heads_form form, struct attn_buffer *out)
{
    if (form == HEADS_JSON)
        add_json(report, out);
    else if (form == HEADS_CSV)
        add_csv(report, out);
    else
        add_table(report, out);
}
