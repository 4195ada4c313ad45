#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "model/bert_parts.h"
#include "model/model_check.h"

bool bert_open(struct bert **model, const char *directory, struct attn_error *error)
{
    *model = NULL;
    struct bert *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    if (!bert_config_read(&made->config, directory, error) ||
        !checkpoint_open(&made->checkpoint, directory, error) ||
        !bert_weights_bind(&made->weights, &made->config, made->checkpoint, error)) {
        bert_close(made);
        return false;
    }
    *model = made;
    return true;
}

void bert_close(struct bert *model)
{
    if (!model)
        return;
    bert_weights_release(&model->weights);
    checkpoint_close(model->checkpoint);
    free(model);
}

const struct bert_config *bert_get_config(const struct bert *model)
{
    return &model->config;
}

bool bert_check_input(const struct bert *model, const struct bert_input *input,
                      struct attn_error *error)
{
    const struct bert_config *config = &model->config;
    if (!model_check_batch(&input->batch, config->positions, error))
        return false;
    const int64_t tokens = packed_batch_tokens(&input->batch);
    if (!model_check_ids(input->ids, tokens, config->vocabulary, error))
        return false;
    for (int64_t t = 0; input->types && t < tokens; t++)
        if (input->types[t] < 0 || input->types[t] >= config->types)
            return attn_error_set(error, "token type %ld is outside the model's %lld types",
                                  (long)input->types[t], (long long)config->types);
    return true;
}

void bert_embed(const struct bert *model, const struct compute *compute,
                const struct bert_input *input, float *x)
{
    const struct bert_weights *weights = &model->weights;
    const int64_t hidden = model->config.hidden;
    int64_t token = 0;
    for (int64_t n = 0; n < input->batch.sequences; n++)
        for (int64_t place = 0; place < packed_batch_length(&input->batch, n); place++, token++) {
            const float *word = weights->words + input->ids[token] * hidden;
            const float *type = weights->types + (input->types ? input->types[token] : 0) * hidden;
            const float *position = weights->positions + place * hidden;
            for (int64_t c = 0; c < hidden; c++)
                x[token * hidden + c] = word[c] + type[c] + position[c];
        }
    layer_norm_forward(compute, &weights->embedding_norm, token, x, NULL, x);
}

/* A post-norm layer:  x = norm(x + attention(x))  and then  x = norm(x + W₂·gelu(W₁·x)).
 * The last product of each half adds to x itself; a bias is added by the pass that follows. */
static bool layer_forward(const struct bert *model, int64_t n, const struct compute *compute,
                          const struct packed_batch *batch, float *x, float *inside,
                          const struct model_observer *observer, struct attn_error *error)
{
    const struct bert_layer *layer = &model->weights.layers[n];
    const int64_t tokens = packed_batch_tokens(batch), hidden = model->config.hidden,
                  inner = model->config.inner;

    struct layer_observer bound = {observer, n};
    const struct attention_observer watch = layer_observer_watch(&bound);
    if (!self_attention_forward(compute, &layer->attention, batch, x, x, inside,
                                observer ? &watch : NULL, error))
        return false;
    layer_norm_forward(compute, &layer->attention_norm, tokens, x, layer->attention.output.bias, x);

    linear_product(&layer->intermediate, tokens, x, hidden, inside, inner);
    activation_forward(compute, model->config.activation, tokens, inner, layer->intermediate.bias,
                       inside);
    linear_accumulate(&layer->output, tokens, inside, inner, x, hidden);
    layer_norm_forward(compute, &layer->output_norm, tokens, x, layer->output.bias, x);
    return true;
}

/* What one half of a layer needs inside, for one layer after the other: attention's workspace, or
 * [tokens][inner]. NULL where its size does not fit. */
static float *reserve_inside(const struct bert *model, int64_t tokens,
                             struct attn_workspace *workspace)
{
    const struct bert_config *config = &model->config;
    int64_t attention = self_attention_workspace(&model->weights.layers[0].attention, 1);
    int64_t inside = attention > config->inner ? attention : config->inner; /* a token */
    int64_t numbers, bytes;
    if (!attn_checked_multiply(tokens, inside, &numbers) ||
        !attn_checked_multiply(numbers, (int64_t)sizeof(float), &bytes) ||
        (uint64_t)bytes > SIZE_MAX)
        return NULL;
    return attn_workspace_reserve(workspace, &attn_allocator_default, (size_t)bytes);
}

bool bert_forward(const struct bert *model, const struct compute *compute,
                  const struct bert_input *input, float *hidden,
                  const struct model_observer *observer, struct attn_error *error)
{
    if (!bert_check_input(model, input, error))
        return false;

    const int64_t tokens = packed_batch_tokens(&input->batch);
    struct attn_workspace workspace = {0};
    float *inside = reserve_inside(model, tokens, &workspace);
    if (!inside)
        return attn_error_memory(error);

    bert_embed(model, compute, input, hidden);

    bool done = true;
    for (int64_t n = 0; done && n < model->config.layers; n++)
        done = layer_forward(model, n, compute, &input->batch, hidden, inside, observer, error);

    attn_workspace_release(&workspace, &attn_allocator_default);
    return done && model_check_finite(hidden, tokens * model->config.hidden, error);
}
