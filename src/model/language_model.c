/* The passes of a batch through a language model: up through the layers to the loss, and down again
 * with the gradients. */
#include "model/language_model.h"

#include "model/language_head.h"
#include "model/model_check.h"

const struct language_model_settings *
language_model_get_settings(const struct language_model *model)
{
    return &model->settings;
}

void language_model_set_dropout(struct language_model *model, float dropout)
{
    model->settings.dropout = dropout;
}

struct parameters *language_model_parameters(struct language_model *model)
{
    return &model->parameters;
}

static bool check_batch(const struct language_model *model, const struct packed_batch *batch,
                        const int32_t *ids, struct attn_error *error)
{
    return model_check_batch(batch, model->settings.context, error) &&
           model_check_ids(ids, packed_batch_tokens(batch), model->settings.vocabulary, error);
}

static bool check_labels(const struct language_model *model, const struct language_batch *batch,
                         struct attn_error *error)
{
    for (int64_t t = 0; t < packed_batch_tokens(&batch->batch); t++) {
        const int32_t label = batch->labels[t];
        if (label != CROSS_ENTROPY_IGNORE && (label < 0 || label >= model->settings.vocabulary))
            return attn_error_set(error,
                                  "label %ld of token %lld is outside the model's vocabulary of "
                                  "%lld; %d is a token without one",
                                  (long)label, (long long)t, (long long)model->settings.vocabulary,
                                  CROSS_ENTROPY_IGNORE);
    }
    return true;
}

static void fill_positions(struct language_pass *pass)
{
    struct language_memory *memory = pass->memory;
    int64_t token = 0;
    for (int64_t n = 0; n < pass->batch->sequences; n++)
        for (int64_t place = 0; place < packed_batch_length(pass->batch, n); place++, token++) {
            memory->positions[token] = (int32_t)place;
            memory->zeros[token] = 0;
        }
}

/* A checked batch and the memory for it. */
static bool start(struct language_pass *pass, struct language_model *model,
                  const struct compute *compute, const struct packed_batch *batch,
                  struct attn_error *error)
{
    pass->model = model;
    pass->memory = &model->memory;
    pass->compute = compute;
    pass->batch = batch;
    pass->tokens = packed_batch_tokens(batch);
    if (!language_memory_reserve(pass->memory, model, pass->tokens, pass->step != NULL, error))
        return false;
    fill_positions(pass);
    return true;
}

static bool forward(struct language_pass *pass, const int32_t *ids, struct attn_error *error)
{
    const struct language_model *model = pass->model;
    model->kind->embed(pass, ids, language_memory_layer(pass->memory, 0).x);
    for (int64_t n = 0; n < model->settings.layers; n++)
        if (!model->kind->layer(pass, n, error))
            return false;
    return true;
}

/* From memory->dx, which language_head_lose leaves, down to the embeddings. */
static bool backward(struct language_pass *pass, const int32_t *ids, struct attn_error *error)
{
    const struct language_model *model = pass->model;
    float *dx = pass->memory->dx;
    for (int64_t n = model->settings.layers - 1; n >= 0; n--) {
        if (!model->kind->layer_backward(pass, n, dx, error))
            return false;
        pass_ready(pass, model->layers[n].begin, model->layers[n].count);
    }
    if (!model->kind->embed_backward(pass, ids, dx, error))
        return false;
    pass_ready(pass, 0, model->layers[0].begin);
    return true;
}

bool language_model_learn(struct language_model *model, const struct compute *compute,
                          const struct language_batch *batch,
                          const struct language_model_step *step, struct cross_entropy *sum,
                          struct attn_error *error)
{
    struct language_pass pass = {.step = step};
    if (!check_batch(model, &batch->batch, batch->ids, error) ||
        !check_labels(model, batch, error) ||
        !parameters_want_gradients(&model->parameters, error) ||
        !start(&pass, model, compute, &batch->batch, error))
        return false;
    pass_begin(&pass);
    struct cross_entropy lost = {0};
    const bool done = forward(&pass, batch->ids, error) &&
                      language_head_lose(&pass, batch->labels, &lost, error) &&
                      backward(&pass, batch->ids, error);
    pass_end(&pass);
    if (!done)
        return false;
    sum->loss += lost.loss;
    sum->counts += lost.counts;
    return true;
}

bool language_model_evaluate(struct language_model *model, const struct compute *compute,
                             const struct language_batch *batch, struct cross_entropy *sum,
                             struct attn_error *error)
{
    struct language_pass pass = {0};
    return check_batch(model, &batch->batch, batch->ids, error) &&
           check_labels(model, batch, error) &&
           start(&pass, model, compute, &batch->batch, error) &&
           forward(&pass, batch->ids, error) &&
           language_head_lose(&pass, batch->labels, sum, error);
}

static bool forward_one(struct language_pass *pass, struct language_model *model,
                        const struct compute *compute, const struct packed_batch *batch,
                        const int32_t *ids, struct attn_error *error)
{
    return check_batch(model, batch, ids, error) && start(pass, model, compute, batch, error) &&
           forward(pass, ids, error);
}

bool language_model_next(struct language_model *model, const struct compute *compute,
                         const int32_t *ids, int64_t tokens, float *logits,
                         struct attn_error *error)
{
    struct language_pass pass = {0};
    const int64_t starts[] = {0, tokens};
    const struct packed_batch batch = {1, starts};
    if (!forward_one(&pass, model, compute, &batch, ids, error))
        return false;
    const int64_t last = tokens - 1;
    language_head_tell(&pass, &last, 1, logits);
    return true;
}

static bool check_places(const struct language_model *model, const struct language_places *sequence,
                         struct attn_error *error)
{
    const int64_t types = model->details.types;
    for (int64_t t = 0; sequence->types && t < sequence->tokens; t++)
        if (sequence->types[t] < 0 || sequence->types[t] >= types)
            return attn_error_set(error,
                                  "token %lld is of type %ld, but the model has %lld types from 0",
                                  (long long)t, (long)sequence->types[t], (long long)types);
    for (int64_t n = 0; n < sequence->count; n++) {
        const int64_t place = sequence->places[n];
        if (place < 0 || place >= sequence->tokens)
            return attn_error_set(error, "place %lld is outside the text's %lld tokens",
                                  (long long)place, (long long)sequence->tokens);
        if (n > 0 && place <= sequence->places[n - 1])
            return attn_error_set(error, "place %lld does not stand behind place %lld",
                                  (long long)place, (long long)sequence->places[n - 1]);
    }
    return true;
}

bool language_model_tell(struct language_model *model, const struct compute *compute,
                         const struct language_places *sequence, float *logits,
                         struct attn_error *error)
{
    struct language_pass pass = {.types = sequence->types};
    const int64_t starts[] = {0, sequence->tokens};
    const struct packed_batch batch = {1, starts};
    if (!check_places(model, sequence, error) ||
        !forward_one(&pass, model, compute, &batch, sequence->ids, error))
        return false;
    language_head_tell(&pass, sequence->places, sequence->count, logits);
    return model_check_finite(logits, sequence->count * model->settings.vocabulary, error);
}

bool language_model_tell_hidden(struct language_model *model, const struct compute *compute,
                                const float *hidden, int64_t count, float *logits,
                                struct attn_error *error)
{
    struct language_pass pass = {0};
    const int64_t starts[] = {0, count};
    const struct packed_batch batch = {1, starts};
    if (!start(&pass, model, compute, &batch, error))
        return false;
    language_head_tell_rows(&pass, hidden, count, logits);
    return model_check_finite(logits, count * model->settings.vocabulary, error);
}
