#include "look_what_if.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "look_what_if_report.h"
#include "output.h"

#define MASK "[MASK]"

bool look_what_if_is_asked(const struct look_options *options)
{
    return options->ablated_count > 0 || options->cut_count > 0;
}

/* Where the words of a cut are looked for. */
struct search {
    const struct look *look;
    const struct look_labels *labels;
    const struct encoding *encoding;
    bool *units; /* [look->units]: those that a word names */
};

/* The tokens of the word that bytes of --cut name. */
static bool find_tokens(const struct search *search, const char *bytes, size_t size, bool *tokens,
                        struct attn_error *error)
{
    char *name = strndup(bytes, size);
    if (!name)
        return attn_error_memory(error);
    bool done =
        look_labels_choose_for(search->look, search->labels, "--cut", name, search->units, error);
    free(name);
    const struct look *look = search->look;
    memset(tokens, false, search->encoding->token_count * sizeof *tokens);
    for (size_t unit = 0; done && unit < look->units; unit++)
        for (size_t n = 0; search->units[unit] && n < look->token_counts[unit]; n++)
            tokens[look->first_token[unit] + n] = true;
    return done;
}

static bool find_cut(const struct search *search, const char *cut, size_t query_size, bool *tokens,
                     struct attn_error *error)
{
    const char *key = cut + query_size + 1;
    return find_tokens(search, cut, query_size, tokens, error) &&
           find_tokens(search, key, strlen(key), tokens + search->encoding->token_count, error);
}

/* A colon may be a word of the text, so that all places are tried where both sides have a name;
 * what is said of a cut that fits nowhere is said of the first. */
static bool find_colon(const struct search *search, const char *cut, size_t *query_size,
                       bool *tokens, struct attn_error *error)
{
    const size_t size = strlen(cut);
    struct attn_error later;
    bool is_first = true;
    for (size_t at = 1; at + 1 < size; at++) {
        if (cut[at] != ':')
            continue;
        *query_size = at;
        if (find_cut(search, cut, at, tokens, is_first ? error : &later))
            return true;
        is_first = false;
    }
    return is_first ? attn_error_set(error,
                                     "--cut is '%s', but must name a word and one that it shall "
                                     "not see, with a colon between them, as it:robot",
                                     cut)
                    : false;
}

bool look_what_if_make(const struct look_options *options, const struct look *look,
                       const struct look_labels *labels, const struct encoding *encoding,
                       struct look_what_if *made, struct attn_error *error)
{
    const size_t cuts = options->cut_count, tokens = encoding->token_count;
    struct search search = {look, labels, encoding, calloc(look->units + 1, sizeof(bool))};
    size_t members;
    *made = (struct look_what_if){
        .what_if = {.ablated = options->ablated,
                    .ablated_count = options->ablated_count,
                    .cut_count = cuts,
                    .where = options->heads,
                    .where_count = options->head_count},
        .cuts = calloc(cuts + 1, sizeof *made->cuts),
        .query_sizes = calloc(cuts + 1, sizeof *made->query_sizes),
        .tokens = attn_checked_size_multiply(2 * cuts + 1, tokens, &members)
                      ? calloc(members + 1, sizeof *made->tokens)
                      : NULL,
    };
    made->what_if.cuts = made->cuts;
    bool done = (search.units && made->cuts && made->query_sizes && made->tokens) ||
                attn_error_memory(error);
    for (size_t n = 0; done && n < cuts; n++) {
        bool *queries = made->tokens + 2 * n * tokens;
        made->cuts[n] = (struct what_if_cut){queries, queries + tokens};
        done = find_colon(&search, options->cuts[n], &made->query_sizes[n], queries, error);
    }
    free(search.units);
    if (!done)
        look_what_if_release(made);
    return done;
}

void look_what_if_release(struct look_what_if *made)
{
    free(made->cuts);
    free(made->query_sizes);
    free(made->tokens);
    *made = (struct look_what_if){0};
}

/* The open places of a text, and the model that fills them. */
static bool masks_find(const struct session *session, const struct encoding *encoding,
                       struct what_if_masks *masks, int64_t *places, struct attn_error *error)
{
    const int32_t mask = tokenizer_special(session->tokenizer, MASK);
    *masks = (struct what_if_masks){.places = places};
    for (size_t t = 0; mask >= 0 && t < encoding->token_count; t++)
        if (encoding->tokens[t].id == mask)
            places[masks->count++] = (int64_t)t;
    bool there = false;
    if (masks->count == 0)
        return true;
    if (!masked_words_are_there(session->path, &there, error))
        return false;
    return !there || masked_words_open(&masks->model, session->path, error);
}

/* How far a unit has moved: the mean over its tokens. */
static double move_of(const struct look *look, const double *distances, size_t unit)
{
    const size_t count = look->token_counts[unit];
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += distances[look->first_token[unit] + n];
    return sum / (double)count;
}

static int compare_moves(const void *a, const void *b)
{
    const struct what_if_move *one = a, *other = b;
    if (one->distance != other->distance)
        return one->distance < other->distance ? 1 : -1;
    return (one->unit > other->unit) - (one->unit < other->unit);
}

static bool rank_moves(struct what_if_report *report)
{
    const struct look *look = report->look;
    report->moves = calloc(look->units + 1, sizeof *report->moves);
    if (!report->moves || !report->effects.has_embedding)
        return report->moves != NULL;
    for (size_t unit = 0; unit < look->units; unit++)
        report->moves[unit] =
            (struct what_if_move){unit, move_of(look, report->effects.token_distances, unit)};
    qsort(report->moves, look->units, sizeof *report->moves, compare_moves);
    const size_t top = report->options->top;
    report->move_count = top < look->units ? top : look->units;
    return true;
}

static bool write_report(struct what_if_report *report, struct attn_error *error)
{
    struct attn_buffer out = {0};
    bool done = rank_moves(report) || attn_error_memory(error);
    if (done) {
        if (report->options->shared.json)
            what_if_report_json(report, &out);
        else
            what_if_report_lines(report, &out);
        done = output_write(&out, error);
    }
    attn_buffer_release(&out);
    free(report->moves);
    return done;
}

bool look_what_if_print(const struct look_options *options, struct session *session,
                        const struct look *look, const struct look_labels *labels,
                        const struct text texts[2], const struct encoding *encoding,
                        const struct look_what_if *what_if, struct attn_error *error)
{
    struct what_if_report report = {
        .options = options,
        .session = session,
        .look = look,
        .labels = labels,
        .texts = texts,
        .encoding = encoding,
        .what_if = what_if,
    };
    struct what_if_masks masks = {0};
    int64_t *places = calloc(encoding->token_count + 1, sizeof *places);
    bool done = places ? session->settings.kind != MODEL_BERT ||
                             masks_find(session, encoding, &masks, places, error)
                       : attn_error_memory(error);
    report.lacks_head = masks.count > 0 && !masks.model;
    done = done && what_if_run(session->text_model, masks.model ? &masks : NULL, &session->compute,
                               encoding, &what_if->what_if, options->top, &report.effects, error);
    done = done && write_report(&report, error);
    what_if_effects_release(&report.effects);
    masked_words_close(masks.model);
    free(places);
    return done;
}
