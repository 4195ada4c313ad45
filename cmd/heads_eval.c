#include "heads_eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads_texts.h"
#include "output.h"
#include "probe/dependency_sentence.h"

/* A treebank and what the model reads of it. */
struct evaluation {
    const struct heads_options *options;
    struct session *session;
    struct treebank treebank;
    struct encoding *encodings; /* [sentence_count] */
    struct dependency_scores scores;
};

static const char *treebank_name(const struct heads_options *options)
{
    return strcmp(options->treebank, "-") == 0 ? "standard input" : options->treebank;
}

/* Special spellings are letters: a treebank is no text that was written for this model. */
static bool encode_sentence(const struct evaluation *evaluation, size_t n, struct attn_buffer *text,
                            struct attn_error *error)
{
    const struct treebank_sentence *sentence = &evaluation->treebank.sentences[n];
    struct encoding *encoding = &evaluation->encodings[n];
    char name[256];
    snprintf(name, sizeof name, "%s: line %zu", treebank_name(evaluation->options), sentence->line);
    attn_buffer_clear(text);
    treebank_add_text(&evaluation->treebank, sentence, text);
    if (text->failed)
        return attn_error_memory(error);
    const struct tokenizer_input input = {
        .text = text->data, .text_size = text->size, .specials = SPECIAL_PLAIN};
    if (!input_check_utf8(name, text->data, text->size, error) ||
        !tokenizer_encode(evaluation->session->tokenizer, &input, encoding, error))
        return false;
    session_tell_dropped("heads", name, encoding);
    heads_drop_words(encoding);
    const size_t positions = (size_t)evaluation->session->settings.positions;
    if (encoding->token_count > positions)
        return attn_error_set(error, "%s: the sentence has %zu tokens, the model has %zu positions",
                              name, encoding->token_count, positions);
    return encoding->token_count > 0 ||
           attn_error_set(error, "%s: the model has no token for any word of the sentence", name);
}

/* All before the first is computed: a sentence that cannot be used is told at once. */
static bool encode_all(struct evaluation *evaluation, struct attn_error *error)
{
    const size_t count = evaluation->treebank.sentence_count;
    evaluation->encodings = calloc(count, sizeof *evaluation->encodings);
    if (!evaluation->encodings)
        return attn_error_memory(error);
    struct attn_buffer text = {0};
    bool done = true;
    for (size_t n = 0; done && n < count; n++)
        done = encode_sentence(evaluation, n, &text, error);
    attn_buffer_release(&text);
    return done;
}

static bool read_sentences(struct evaluation *evaluation, struct attn_error *error)
{
    struct session *session = evaluation->session;
    const struct treebank *treebank = &evaluation->treebank;
    bool done = true;
    for (size_t n = 0; done && n < treebank->sentence_count; n++) {
        progress_show("heads", n, treebank->sentence_count, "sentences");
        done = dependency_sentence_add(&evaluation->scores, treebank, &treebank->sentences[n],
                                       session->text_model, &session->compute,
                                       &evaluation->encodings[n], error);
    }
    progress_end();
    return done;
}

static bool evaluate(struct evaluation *evaluation, struct attn_error *error)
{
    const struct heads_options *options = evaluation->options;
    struct session *session = evaluation->session;
    const struct text_model_settings *settings = &session->settings;
    struct attn_error fault;
    if (!dependency_scores_create(&evaluation->scores, &evaluation->treebank, settings->layers,
                                  settings->heads, &fault))
        return attn_error_set(error, "%s: %s", treebank_name(options), fault.message);
    bool done = encode_all(evaluation, error) &&
                session_open_text_model(session, options->shared.threads, error) &&
                read_sentences(evaluation, error);
    if (done) {
        const bool all = options->layer == HEADS_ALL_LAYERS;
        const struct heads_eval_report report = {
            .options = options,
            .model = session->name,
            .treebank = &evaluation->treebank,
            .scores = &evaluation->scores,
            .first_layer = all ? 0 : options->layer,
            .last_layer = all ? settings->layers - 1 : options->layer,
        };
        done = heads_output(options, heads_eval_render, &report, error);
    }
    dependency_scores_release(&evaluation->scores);
    return done;
}

bool heads_eval(const struct heads_options *options, struct session *session,
                struct attn_error *error)
{
    struct evaluation evaluation = {.options = options, .session = session};
    if (!treebank_read(&evaluation.treebank, options->treebank, error))
        return false;
    const bool done = evaluate(&evaluation, error);
    for (size_t n = 0; evaluation.encodings && n < evaluation.treebank.sentence_count; n++)
        encoding_release(&evaluation.encodings[n]);
    free(evaluation.encodings);
    treebank_release(&evaluation.treebank);
    return done;
}
