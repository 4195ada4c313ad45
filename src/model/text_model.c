#include "model/text_model.h"

#include <stdlib.h>

#include "model/bert.h"
#include "model/gpt2_config.h"
#include "model/model_kind.h"

struct text_model {
    struct text_model_settings settings;
    struct bert *bert;           /* one of the two */
    struct language_model *gpt2; /* is there */
};

bool text_model_read_settings(struct text_model_settings *settings, const char *directory,
                              struct attn_error *error)
{
    enum language_model_kind kind;
    if (!model_kind_read(&kind, directory, error))
        return false;
    struct bert_config bert;
    struct gpt2_config gpt2;
    switch (kind) {
    case LANGUAGE_MODEL_BERT:
        if (!bert_config_read(&bert, directory, error))
            return false;
        *settings = (struct text_model_settings){kind,        bert.layers,    bert.heads,
                                                 bert.hidden, bert.positions, bert.vocabulary};
        return true;
    case LANGUAGE_MODEL_GPT2:
        if (!gpt2_config_read(&gpt2, directory, error))
            return false;
        *settings = (struct text_model_settings){kind,        gpt2.layers,    gpt2.heads,
                                                 gpt2.hidden, gpt2.positions, gpt2.vocabulary};
        return true;
    }
    return false;
}

bool text_model_open(struct text_model **model, const char *directory, struct attn_error *error)
{
    *model = NULL;
    struct text_model *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    if (!text_model_read_settings(&made->settings, directory, error) ||
        !(made->settings.kind == LANGUAGE_MODEL_BERT
              ? bert_open(&made->bert, directory, error)
              : language_model_open(&made->gpt2, directory, 0, error))) {
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
    language_model_close(model->gpt2);
    free(model);
}

const struct text_model_settings *text_model_get_settings(const struct text_model *model)
{
    return &model->settings;
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

bool text_model_read(struct text_model *model, const struct compute *compute,
                     const struct encoding *encoding, const struct model_observer *observer,
                     struct attn_error *error)
{
    const int64_t tokens = (int64_t)encoding->token_count;
    const int64_t starts[] = {0, tokens};
    struct reading reading;
    bool done = reading_start(&reading, model, encoding) || attn_error_memory(error);
    if (done && model->bert) {
        const struct bert_input input = {{1, starts}, reading.ids, reading.types};
        done = bert_forward(model->bert, compute, &input, reading.hidden, observer, error);
    } else if (done) {
        done = language_model_observe(model->gpt2, compute, reading.ids, tokens, observer, error);
    }
    reading_release(&reading);
    return done;
}
