#include <stdlib.h>
#include <string.h>

#include "model/text_model_parts.h"

static bool read_bert(struct text_model_settings *settings, const char *directory,
                      struct attn_error *error)
{
    struct bert_config config;
    if (!bert_config_read(&config, directory, error))
        return false;
    *settings = (struct text_model_settings){MODEL_BERT,    config.layers,    config.heads,
                                             config.hidden, config.positions, config.vocabulary};
    return true;
}

static bool read_causal(struct text_model_settings *settings, const struct model_source *source,
                        struct attn_error *error)
{
    struct causal_settings causal;
    if (!causal_model_read_settings(&causal, source, error))
        return false;
    *settings = (struct text_model_settings){causal.kind,  causal.layers,  causal.heads,
                                             causal.width, causal.context, causal.vocabulary};
    return true;
}

bool text_model_read_settings(struct text_model_settings *settings,
                              const struct model_source *source, struct attn_error *error)
{
    enum model_kind kind;
    if (!model_source_kind(source, &kind, error))
        return false;
    return kind == MODEL_BERT ? read_bert(settings, model_source_path(source), error)
                              : read_causal(settings, source, error);
}

bool text_model_open(struct text_model **model, const struct model_source *source,
                     struct attn_error *error)
{
    *model = NULL;
    struct text_model *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    if (!text_model_read_settings(&made->settings, source, error) ||
        !(made->settings.kind == MODEL_BERT
              ? bert_open(&made->bert, model_source_path(source), error)
              : causal_model_open(&made->causal, source, error))) {
        text_model_close(made);
        return false;
    }
    *model = made;
    return true;
}

void text_model_close(struct text_model *model)
{
    if (!model)
        return;
    bert_close(model->bert);
    causal_model_close(model->causal);
    free(model);
}

const struct text_model_settings *text_model_get_settings(const struct text_model *model)
{
    return &model->settings;
}

const struct causal_model *text_model_causal(const struct text_model *model)
{
    return model->causal;
}

/* What a model is given, and what a BERT gives beside its attention. Each has room for a token at
 * least, so that a text without one comes to the model, which refuses it. */
struct reading {
    int32_t *ids, *types; /* [tokens] */
    float *hidden;        /* [tokens][width] */
};

static bool reading_start(struct reading *reading, const struct text_model *model,
                          const struct encoding *encoding)
{
    const size_t tokens = encoding->token_count > 0 ? encoding->token_count : 1;
    *reading = (struct reading){
        .ids = calloc(tokens, sizeof *reading->ids),
        .types = calloc(tokens, sizeof *reading->types),
        .hidden = calloc(tokens, (size_t)model->settings.width * sizeof *reading->hidden),
    };
    if (!reading->ids || !reading->types || !reading->hidden)
        return false;
    for (size_t t = 0; t < encoding->token_count; t++) {
        reading->ids[t] = encoding->tokens[t].id;
        reading->types[t] = encoding->tokens[t].type;
    }
    return true;
}

static void reading_release(struct reading *reading)
{
    free(reading->ids);
    free(reading->types);
    free(reading->hidden);
}

/* In one chunk, with keys and values as they are. */
static bool read_causally(const struct text_model *model, const struct compute *compute,
                          const struct causal_input *input, const struct model_observer *observer,
                          float *logits, struct attn_error *error)
{
    const int64_t tokens = input->starts[1], positions = model->settings.positions;
    const int64_t room = tokens < 1 ? 1 : tokens < positions ? tokens : positions;
    const struct causal_session_settings settings = {
        .sequences = 1,
        .capacity = room,
        .chunk = room,
        .cache = CACHE_F32,
        .precision = ATTN_PRECISION_EXACT,
    };
    struct causal_session *session;
    if (!causal_session_create(&session, model->causal, compute, &settings, error))
        return false;
    const bool done = causal_session_read(session, input, observer, logits, error);
    causal_session_destroy(session);
    return done;
}

bool text_model_read(struct text_model *model, const struct compute *compute,
                     const struct encoding *encoding, const struct model_observer *observer,
                     const struct text_results *results, struct attn_error *error)
{
    const int64_t starts[] = {0, (int64_t)encoding->token_count};
    float *logits = results ? results->logits : NULL;
    if (model->bert && logits)
        return attn_error_set(error, "a BERT tells no next word");
    if (!model->bert && results && results->hidden)
        return attn_error_set(error, "last hidden states are told of a BERT only");
    struct reading reading;
    bool done = reading_start(&reading, model, encoding) || attn_error_memory(error);
    if (done && model->bert) {
        const struct bert_input input = {{1, starts}, reading.ids, reading.types};
        done = bert_forward(model->bert, compute, &input, reading.hidden, observer, error);
        if (done && results && results->hidden)
            memcpy(results->hidden, reading.hidden,
                   encoding->token_count * (size_t)model->settings.width * sizeof(float));
    } else if (done) {
        const struct causal_input input = {1, NULL, starts, reading.ids,
                                           logits ? CAUSAL_LAST : CAUSAL_NONE};
        done = read_causally(model, compute, &input, observer, logits, error);
    }
    reading_release(&reading);
    return done;
}
