/* attn heads: what each head does, over a text or many. */
#include <stdlib.h>

#include "base/file.h"
#include "heads_eval.h"
#include "heads_table.h"
#include "heads_texts.h"
#include "output.h"
#include "verb.h"

static bool report_survey(const struct heads_options *options, const struct session *session,
                          const struct head_survey *survey, struct attn_error *error)
{
    size_t count;
    size_t *order = heads_order(options, survey, &count);
    if (!order)
        return attn_error_memory(error);
    const struct heads_report report = {options, session->name, survey, order, count};
    const bool done = heads_output(options, heads_table_render, &report, error);
    free(order);
    return done;
}

static bool survey_texts(const struct heads_options *options, struct session *session,
                         const struct heads_texts *texts, struct attn_error *error)
{
    struct head_collector *collector;
    if (!session_open_text_model(session, options->shared.threads, error) ||
        !head_collector_create(&collector, &session->settings, error))
        return false;
    bool done = true;
    const bool many = texts->count > 1;
    for (size_t n = 0; done && n < texts->count; n++) {
        if (many)
            progress_show("heads", n, texts->count, "texts");
        done = head_collector_add(collector, session->text_model, &session->compute,
                                  &texts->encodings[n], error);
    }
    if (many)
        progress_end();
    struct head_survey survey = {0};
    done = done && head_collector_finish(collector, &survey, error) &&
           report_survey(options, session, &survey, error);
    head_survey_release(&survey);
    head_collector_destroy(collector);
    return done;
}

static bool look_at_texts(const struct heads_options *options, struct session *session,
                          struct attn_error *error)
{
    struct heads_texts texts;
    const bool done =
        (options->source == HEADS_REPEAT ? heads_texts_repeat(options, session, &texts, error)
                                         : heads_texts_read(options, session, &texts, error)) &&
        survey_texts(options, session, &texts, error);
    heads_texts_release(&texts);
    return done;
}

static bool check_layer(const struct heads_options *options, const struct session *session,
                        struct attn_error *error)
{
    const long long layers = session->settings.layers;
    return options->layer < layers ||
           attn_error_set(error,
                          "the model has %lld layers, counted from 0: there is no layer %lld",
                          layers, (long long)options->layer);
}

static bool run(const struct heads_options *options, struct attn_error *error)
{
    struct session session = {0};
    const bool done =
        (!options->shared.output || attn_file_check_write(options->shared.output, error)) &&
        session_locate(&session, options->shared.model, error) &&
        session_open_settings(&session, error) && check_layer(options, &session, error) &&
        session_open_tokenizer(&session, error) &&
        (options->source == HEADS_TREEBANK ? heads_eval(options, &session, error)
                                           : look_at_texts(options, &session, error));
    session_close(&session);
    return done;
}

enum status verb_heads(int argc, char **argv, struct attn_error *error)
{
    struct heads_options options;
    if (!heads_options_parse(argc, argv, &options, error))
        return STATUS_USAGE;
    const bool done =
        options.shared.help ? options_print_help(argv[0], error) : run(&options, error);
    return done ? STATUS_SUCCESS : STATUS_FAILURE;
}
