/* BERT with its masked-word head: its parameters by name, and what stands around its layers.
 *
 *     x = drop(norm(word + position + type))          hidden = norm(activation(W·x + b))
 *
 * J. Devlin et al., "BERT" (2018), figure 2 and 3.1. What is learned from is all of type 0. */
#include <stdio.h>
#include <string.h>

#include "model/bert_config.h"
#include "model/bert_layer.h"
#include "nn/embedding_table.h"

enum { NAME_SIZE = PARAMETER_NAME_SIZE };

static const char *part_name(char name[NAME_SIZE], int64_t layer, const char *part)
{
    snprintf(name, NAME_SIZE, "bert.encoder.layer.%lld.%s", (long long)layer, part);
    return name;
}

static struct linear linear(int64_t in, int64_t out)
{
    return (struct linear){.in = in, .out = out, .layout = LINEAR_OUT_IN};
}

/* Weights one behind the other, and then biases: self_attention.c then takes the three for one. */
static void declare_projections(struct language_declaration *declaration, int64_t n)
{
    struct self_attention *attention = &declaration->model->layers[n].attention;
    struct linear *const parts[] = {&attention->query, &attention->key, &attention->value};
    static const char *const names[] = {"query", "key", "value"};
    const int64_t width = declaration->model->settings.width;
    char prefix[NAME_SIZE];
    part_name(prefix, n, "attention.self");
    for (int i = 0; i < 3; i++)
        language_declare(declaration, &parts[i]->weight, START_NORMAL, width, width, "%s.%s.weight",
                         prefix, names[i]);
    for (int i = 0; i < 3; i++)
        language_declare(declaration, &parts[i]->bias, START_ZERO, 0, width, "%s.%s.bias", prefix,
                         names[i]);
}

static void declare_layer(struct language_declaration *declaration, int64_t n)
{
    struct language_model *model = declaration->model;
    struct language_layer *layer = &model->layers[n];
    struct self_attention *attention = &layer->attention;
    const int64_t width = model->settings.width;

    layer->begin = model->parameters.count;
    attention->heads = model->settings.heads;
    attention->sight = SELF_ATTENTION_ALL;
    attention->query = attention->key = attention->value = attention->output = linear(width, width);
    layer->inner = linear(width, model->settings.inner);
    layer->outer = linear(model->settings.inner, width);

    char name[NAME_SIZE];
    declare_projections(declaration, n);
    language_declare_linear(declaration, &attention->output, START_NORMAL,
                            part_name(name, n, "attention.output.dense"));
    language_declare_norm(declaration, &layer->attention_norm,
                          part_name(name, n, "attention.output.LayerNorm"));
    language_declare_linear(declaration, &layer->inner, START_NORMAL,
                            part_name(name, n, "intermediate.dense"));
    language_declare_linear(declaration, &layer->outer, START_NORMAL,
                            part_name(name, n, "output.dense"));
    language_declare_norm(declaration, &layer->inner_norm, part_name(name, n, "output.LayerNorm"));
    layer->count = model->parameters.count - layer->begin;
}

static void declare(struct language_declaration *declaration)
{
    struct language_model *model = declaration->model;
    const struct language_model_settings *settings = &model->settings;
    const int64_t width = settings->width;
    language_declare(declaration, &model->words, START_NORMAL, settings->vocabulary, width,
                     "bert.embeddings.word_embeddings.weight");
    language_declare(declaration, &model->positions, START_NORMAL, settings->context, width,
                     "bert.embeddings.position_embeddings.weight");
    language_declare(declaration, &model->type_table, START_NORMAL, model->details.types, width,
                     "bert.embeddings.token_type_embeddings.weight");
    language_declare_norm(declaration, &model->embedding_norm, "bert.embeddings.LayerNorm");
    for (int64_t n = 0; n < settings->layers; n++)
        declare_layer(declaration, n);

    struct language_head *head = &model->head;
    head->begin = model->parameters.count;
    head->transform = linear(width, width);
    language_declare_linear(declaration, &head->transform, START_NORMAL,
                            BERT_HEAD "transform.dense");
    language_declare_norm(declaration, &head->norm, BERT_HEAD "transform.LayerNorm");
    language_declare(declaration, &head->bias, START_ZERO, 0, settings->vocabulary,
                     BERT_HEAD "bias");
    head->count = model->parameters.count - head->begin;
}

static void add_embeddings(struct language_pass *pass, const int32_t *ids, float *sum)
{
    const struct language_model *model = pass->model;
    const int64_t width = model->settings.width;
    embedding_table_forward(pass->compute, model->words, width, pass->tokens, ids, sum,
                            GRADIENT_SET);
    embedding_table_forward(pass->compute, model->positions, width, pass->tokens,
                            pass->memory->positions, sum, GRADIENT_ADD);
    embedding_table_forward(pass->compute, model->type_table, width, pass->tokens,
                            pass->types ? pass->types : pass->memory->zeros, sum, GRADIENT_ADD);
}

static void embed(struct language_pass *pass, const int32_t *ids, float *x)
{
    add_embeddings(pass, ids, x);
    pass_norm(pass, &pass->model->embedding_norm, pass->tokens, x, x);
    pass_dropout(pass, -1, PASS_EMBEDDINGS, x);
}

static bool embed_backward(struct language_pass *pass, const int32_t *ids, float *dx,
                           struct attn_error *error)
{
    const struct language_model *model = pass->model;
    float *sum = pass->memory->wide[0];
    add_embeddings(pass, ids, sum);
    const float *d_normed =
        pass_dropout_backward(pass, -1, PASS_EMBEDDINGS, dx, pass->memory->wide[1]);
    if (!pass_norm_backward(pass, &model->embedding_norm, pass->tokens, sum, d_normed, dx,
                            GRADIENT_SET, error))
        return false;
    pass_table_backward(pass, model->type_table, model->details.types, pass->memory->zeros, dx,
                        false);
    pass_table_backward(pass, model->positions, model->settings.context, pass->memory->positions,
                        dx, false);
    pass_table_backward(pass, model->words, model->settings.vocabulary, ids, dx, true);
    return true;
}

/* The two steps before the head's norm, kept where the backward pass finds them. */
struct head_steps {
    float *dense, *active; /* [rows][width] */
};

static struct head_steps head_steps(const struct language_pass *pass)
{
    return (struct head_steps){pass->memory->wide[WIDE_HEAD], pass->memory->wide[WIDE_HEAD + 1]};
}

static void head(struct language_pass *pass, int64_t rows, const float *x, float *hidden)
{
    const struct language_model *model = pass->model;
    const struct head_steps steps = head_steps(pass);
    pass_linear(pass, &model->head.transform, rows, x, steps.dense);
    activation_apply(pass->compute, model->details.activation, rows, model->settings.width,
                     steps.dense, steps.active);
    pass_norm(pass, &model->head.norm, rows, steps.active, hidden);
}

static bool head_backward(struct language_pass *pass, int64_t rows, const float *x, float *d_hidden,
                          float *dx, struct attn_error *error)
{
    const struct language_model *model = pass->model;
    const struct head_steps steps = head_steps(pass);
    if (!pass_norm_backward(pass, &model->head.norm, rows, steps.active, d_hidden, d_hidden,
                            GRADIENT_SET, error))
        return false;
    activation_backward(pass->compute, model->details.activation, rows, model->settings.width,
                        steps.dense, d_hidden, d_hidden);
    pass_linear_backward(pass, &model->head.transform, rows, x, d_hidden, dx, GRADIENT_SET);
    return true;
}

static bool write_config(const struct language_model *model, const char *directory,
                         int32_t special_id, struct attn_error *error)
{
    const struct bert_config config = {
        .vocabulary = model->settings.vocabulary,
        .hidden = model->settings.width,
        .layers = model->settings.layers,
        .heads = model->settings.heads,
        .inner = model->settings.inner,
        .positions = model->settings.context,
        .types = model->details.types,
        .norm_epsilon = model->details.norm_epsilon,
        .dropout = model->settings.dropout,
        .activation = model->details.activation,
    };
    return bert_config_write(&config, special_id, directory, error);
}

const struct language_kind language_kind_bert = {
    .prefix = "bert.",
    .details = {.activation = ACTIVATION_GELU_ERF, .norm_epsilon = 1e-12f, .types = 2},
    .declare = declare,
    .embed = embed,
    .embed_backward = embed_backward,
    .layer = bert_layer,
    .layer_backward = bert_layer_backward,
    .head = head,
    .head_backward = head_backward,
    .write_config = write_config,
};
