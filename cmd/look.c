/* attn look: which word looks at which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look_labels.h"
#include "look_lines.h"
#include "look_map.h"
#include "look_options.h"
#include "look_page.h"
#include "look_what_if.h"
#include "look_written.h"
#include "output.h"
#include "session.h"
#include "verb.h"

/* What the verb works on, once the text is read. */
struct work {
    const struct look_options *options;
    struct session *session;
    const struct text *texts; /* [2] */
    const struct encoding *encoding;
    struct look_labels labels;
    const bool *rows;              /* [labels.count]: what --from chooses, or NULL */
    struct what_if_change *change; /* NULL: the model is as it is */
    const char *model;             /* its name, and what is changed of it */
};

/* The matrices of one run of the model. */
struct wanted {
    const struct look_head *heads;
    size_t head_count;
    size_t links;
    bool vectors;
};

typedef bool show_map(const struct work *work, const struct attention_map *map,
                      struct attn_error *error);

static bool print_json(const struct work *work, const struct attention_map *map,
                       struct attn_error *error)
{
    (void)work;
    struct attn_buffer out = {0};
    bool done = draw_json(map, &out, error) && output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

static bool print_lines(const struct work *work, const struct attention_map *map,
                        struct attn_error *error)
{
    struct look_lines settings = {
        .rows = work->rows,
        .top = work->options->top,
        .self = work->options->self,
        .causal = work->session->settings.kind != MODEL_BERT,
        .renormalize = work->options->renormalize,
        .color = output_has_color() ? TERMINAL_COLOR : TERMINAL_PLAIN,
    };
    struct attn_buffer out = {0};
    bool done = look_lines_add(map, &settings, &out, error) && output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

static bool write_file(const struct work *work, const struct attention_map *map,
                       struct attn_error *error)
{
    return map_form_write("look", work->options->shared.output, work->options->draw, map, error);
}

static bool write_file_and_json(const struct work *work, const struct attention_map *map,
                                struct attn_error *error)
{
    return write_file(work, map, error) && print_json(work, map, error);
}

/* Lines rank what is left of each row without the word itself, and renormalise that themselves. */
static bool look_and_show(const struct work *work, const struct wanted *wanted, show_map *show,
                          struct attn_error *error)
{
    const struct look_options *options = work->options;
    const struct look_settings settings = {
        .heads = wanted->heads,
        .head_count = wanted->head_count,
        .unit = options->unit,
        .special = options->special,
        .measure = options->measure,
        .links = wanted->links,
        .vectors = wanted->vectors,
        .change = work->change ? what_if_change_of : NULL,
        .change_user = work->change,
    };
    struct look look;
    if (!look_run(work->session->text_model, &work->session->compute, work->encoding, &settings,
                  &look, error))
        return false;
    if (options->renormalize && show != print_lines)
        look_renormalize(&look, wanted->head_count);

    const struct look_map_settings about = {
        .model = work->model,
        .texts = work->texts,
        .heads = wanted->heads,
        .head_count = wanted->head_count,
        .measure = options->measure,
        .renormalized = options->renormalize,
        .causal = work->session->settings.kind != MODEL_BERT,
    };
    struct look_map map;
    bool done = look_map_make(&look, &work->labels, work->encoding, work->session->tokenizer,
                              &about, &map, error);
    if (done) {
        done = show(work, &map.map, error);
        look_map_release(&map);
    }
    look_release(&look);
    return done;
}

/* A page of a changed model has no vectors: a weight that is cut, or the output of a head that is
 * not there, is not what they make. */
static bool write_page(const struct work *work, struct attn_error *error)
{
    const struct text_model_settings *model = &work->session->settings;
    const size_t units = work->labels.count;
    struct look_head *all = NULL;
    struct wanted wanted = {.heads = work->options->heads,
                            .head_count = work->options->head_count,
                            .vectors = !work->change &&
                                       look_page_vectors(model, work->encoding->token_count)};
    if (!work->options->heads_are_named) {
        size_t count;
        all = look_page_heads(model, work->options->measure, &count);
        if (!all)
            return attn_error_memory(error);
        wanted.heads = all;
        wanted.head_count = look_page_fit(model, count, units);
        if (wanted.head_count < count)
            fprintf(stderr,
                    "attn look: a page cannot hold %zu words of every head: it has %s; --head "
                    "chooses heads\n",
                    units, wanted.head_count > 1 ? "the means of layers" : "the mean of all heads");
    } else if (!look_page_holds(wanted.head_count, units)) {
        return attn_error_set(
            error,
            "a page cannot hold %zu words of %zu matrices: name fewer with --head "
            "or --layer, or shorten the text",
            units, wanted.head_count);
    }
    wanted.links = look_page_links(wanted.head_count, units);
    bool done = look_and_show(work, &wanted, write_file, error);
    free(all);
    return done;
}

/* A page has other matrices than all else; what a change does is printed in place of the matrix. */
static bool show_attention(const struct work *work, struct attn_error *error)
{
    const struct look_options *options = work->options;
    const struct wanted wanted = {.heads = options->heads, .head_count = options->head_count};
    const bool page = options->draw == draw_html, json = options->shared.json && !work->change;
    if (page && !write_page(work, error))
        return false;
    if (page)
        return !json || look_and_show(work, &wanted, print_json, error);
    if (options->draw)
        return look_and_show(work, &wanted, json ? write_file_and_json : write_file, error);
    return look_and_show(work, &wanted, json ? print_json : print_lines, error);
}

/* What is drawn of a changed model says so, or it would be taken for the model's own. */
static bool name_change(struct work *work, const struct look_what_if *made,
                        struct attn_buffer *name, struct attn_error *error)
{
    attn_buffer_format(name, "%s if ", work->session->name);
    look_what_if_tell(work->options, made, name);
    work->model = name->data;
    return !name->failed || attn_error_memory(error);
}

static bool show_change(struct work *work, const struct look *units, struct attn_error *error)
{
    const struct look_options *options = work->options;
    struct look_what_if made;
    struct attn_buffer name = {0};
    if (!look_what_if_make(options, units, &work->labels, work->encoding, &made, error))
        return false;
    bool done = what_if_change_create(&work->change, &made.what_if, &work->session->settings,
                                      work->encoding, error) &&
                name_change(work, &made, &name, error) &&
                (!options->draw || show_attention(work, error)) &&
                ((options->draw && !options->shared.json) ||
                 look_what_if_print(options, work->session, units, &work->labels, work->texts,
                                    work->encoding, &made, error));
    what_if_change_destroy(work->change);
    look_what_if_release(&made);
    attn_buffer_release(&name);
    return done;
}

/* Unless it is open, since it has written. */
static bool open_model(const struct look_options *options, struct session *session,
                       struct attn_error *error)
{
    return session->text_model || session_open_text_model(session, options->shared.threads, error);
}

/* With labels. */
static bool look_at_units(struct work *work, const struct look *units, struct attn_error *error)
{
    const struct look_options *options = work->options;
    bool *rows = options->from ? calloc(units->units, sizeof *rows) : NULL;
    bool done = rows || !options->from ? true : attn_error_memory(error);
    if (done && options->from)
        done = look_labels_choose(units, &work->labels, options->from, rows, error);
    work->rows = rows;
    done = done && open_model(options, work->session, error) &&
           (look_what_if_is_asked(options) ? show_change(work, units, error)
                                           : show_attention(work, error));
    free(rows);
    return done;
}

static bool look_at(const struct look_options *options, struct session *session,
                    const struct text texts[2], const struct encoding *encoding,
                    struct attn_error *error)
{
    if ((int64_t)encoding->token_count > session->settings.positions)
        return attn_error_set(error,
                              "the text has %zu tokens, the model has %lld positions: shorten it",
                              encoding->token_count, (long long)session->settings.positions);
    struct work work = {
        .options = options,
        .session = session,
        .texts = texts,
        .encoding = encoding,
        .model = session->name,
    };
    struct look units;
    if (!look_name_units(encoding, options->unit, options->special, &units, error))
        return false;
    bool done = look_labels_make(&units, encoding, session->tokenizer, options->unit, texts,
                                 &work.labels, error);
    if (done) {
        done = look_at_units(&work, &units, error);
        look_labels_release(&work.labels);
    }
    look_release(&units);
    return done;
}

/* With --generate the text becomes what it is with what the model writes behind it. */
static bool write_on(const struct look_options *options, struct session *session, struct text *text,
                     struct encoding *encoding, struct attn_buffer *joined,
                     struct attn_error *error)
{
    if (!options->generate)
        return true;
    if (!open_model(options, session, error) ||
        !look_written_extend(session, options->generate, text, encoding, joined, error))
        return false;
    *text = (struct text){joined->data, joined->size};
    return true;
}

static bool run(const struct look_options *options, struct attn_error *error)
{
    struct input input = {0};
    struct session session = {0};
    struct encoding encoding = {0};
    struct attn_buffer joined = {0};
    struct text texts[2] = {{NULL, 0}, {options->pair, options->pair ? strlen(options->pair) : 0}};
    bool done = false;
    if (input_check_utf8("--pair", texts[1].data, texts[1].size, error) &&
        input_read(&options->shared, INPUT_ONE_TEXT, &input, error) &&
        session_locate(&session, options->shared.model, error) &&
        session_open_settings(&session, error) && session_open_tokenizer(&session, error)) {
        char name[256];
        input_describe(&input, 0, name, sizeof name);
        texts[0] = input.texts[0];
        if (session_encode(&session, &texts[0], name, options->pair ? &texts[1] : NULL, &encoding,
                           error)) {
            session_tell_dropped("look", name, &encoding);
            done = write_on(options, &session, &texts[0], &encoding, &joined, error) &&
                   look_at(options, &session, texts, &encoding, error);
            encoding_release(&encoding);
        }
    }
    session_close(&session);
    input_release(&input);
    attn_buffer_release(&joined);
    return done;
}

enum status verb_look(int argc, char **argv, struct attn_error *error)
{
    struct look_options options;
    enum status status = STATUS_USAGE;
    if (look_options_parse(argc, argv, &options, error)) {
        bool done = options.shared.help ? options_print_help(argv[0], error) : run(&options, error);
        status = done ? STATUS_SUCCESS : STATUS_FAILURE;
    }
    look_options_release(&options);
    return status;
}
