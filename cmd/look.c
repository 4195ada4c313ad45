/* attn look: which word looks at which. */
#include <stdlib.h>
#include <string.h>

#include "look_labels.h"
#include "look_lines.h"
#include "look_options.h"
#include "output.h"
#include "session.h"
#include "verb.h"

static bool print_json(const struct attention_map *map, struct attn_error *error)
{
    struct attn_buffer out = {0};
    bool done = draw_json(map, &out, error) && output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

static bool print_lines(const struct look_options *options, const struct session *session,
                        const struct attention_map *map, const bool *rows, struct attn_error *error)
{
    struct look_lines settings = {
        .rows = rows,
        .top = options->top,
        .self = options->self,
        .causal = session->settings.kind != MODEL_BERT,
        .renormalize = options->renormalize,
        .color = output_has_color() ? TERMINAL_COLOR : TERMINAL_PLAIN,
    };
    struct attn_buffer out = {0};
    bool done = look_lines_add(map, &settings, &out, error) && output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

/* Files and JSON hold the matrix; lines rank what is left of each row without the word itself,
 * which they renormalise by themselves. */
static bool show(const struct look_options *options, const struct session *session,
                 const struct attention_map *map, float *weights, const bool *rows,
                 struct attn_error *error)
{
    bool lines = !options->draw && !options->shared.json;
    if (lines)
        return print_lines(options, session, map, rows, error);
    if (options->renormalize)
        map_renormalize(weights, map->panel_count * map->rows, map->columns);
    return (!options->draw ||
            map_form_write("look", options->shared.output, options->draw, map, error)) &&
           (!options->shared.json || print_json(map, error));
}

static bool show_look(const struct look_options *options, const struct session *session,
                      const struct text texts[2], const struct encoding *encoding,
                      const struct look *look, struct attn_error *error)
{
    struct look_labels labels;
    if (!look_labels_make(look, encoding, session->tokenizer, options->unit, texts, &labels, error))
        return false;
    bool *chosen = options->from ? calloc(look->units, sizeof *chosen) : NULL;
    struct map_panel *panels = calloc(options->head_count, sizeof *panels);
    bool done = panels && (chosen || !options->from) ? true : attn_error_memory(error);
    if (done && options->from)
        done = look_labels_choose(look, &labels, options->from, chosen, error);

    for (size_t i = 0; done && i < options->head_count; i++) {
        const struct look_head *head = &options->heads[i];
        panels[i].layer = head->layer == LOOK_MEAN ? MAP_MEAN : (int)head->layer;
        panels[i].head = head->head == LOOK_MEAN ? MAP_MEAN : (int)head->head;
        panels[i].weights = look->weights + i * look->units * look->units;
    }
    const char *const *names = (const char *const *)labels.units;
    struct attention_map map = {
        .model = session->name,
        .text = texts[0].data,
        .text_size = texts[0].size,
        .pair = options->pair ? texts[1].data : NULL,
        .pair_size = options->pair ? texts[1].size : 0,
        .rows = look->units,
        .columns = look->units,
        .row_labels = names,
        .row_label_count = labels.count,
        .column_labels = names,
        .column_label_count = labels.count,
        .panels = panels,
        .panel_count = options->head_count,
        .renormalized = options->renormalize,
    };
    done = done && show(options, session, &map, look->weights, chosen, error);
    free(panels);
    free(chosen);
    look_labels_release(&labels);
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
    struct look_settings settings = {.heads = options->heads,
                                     .head_count = options->head_count,
                                     .unit = options->unit,
                                     .special = options->special};
    struct look look;
    if (!session_open_text_model(session, options->shared.threads, error) ||
        !look_run(session->text_model, &session->compute, encoding, &settings, &look, error))
        return false;
    bool done = show_look(options, session, texts, encoding, &look, error);
    look_release(&look);
    return done;
}

static bool run(const struct look_options *options, struct attn_error *error)
{
    struct input input = {0};
    struct session session = {0};
    struct encoding encoding = {0};
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
            done = look_at(options, &session, texts, &encoding, error);
            encoding_release(&encoding);
        }
    }
    session_close(&session);
    input_release(&input);
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
