/* GPT-2 as a language model: its parameters by name, and what stands around its layers. */
#include <stdio.h>

#include "model/gpt2_config.h"
#include "model/gpt2_layer.h"
#include "nn/embedding_table.h"

enum { NAME_SIZE = PARAMETER_NAME_SIZE };

static const char *part_name(char name[NAME_SIZE], int64_t layer, const char *part)
{
    snprintf(name, NAME_SIZE, "transformer.h.%lld.%s", (long long)layer, part);
    return name;
}

/* GPT-2's Conv1D. */
static struct linear conv(int64_t in, int64_t out)
{
    return (struct linear){.in = in, .out = out, .layout = LINEAR_IN_OUT};
}

static void declare_layer(struct language_declaration *declaration, int64_t n)
{
    struct language_model *model = declaration->model;
    struct language_layer *layer = &model->layers[n];
    struct self_attention *attention = &layer->attention;
    const int64_t width = model->settings.width;

    layer->begin = model->parameters.count;
    attention->heads = model->settings.heads;
    attention->sight = SELF_ATTENTION_CAUSAL;
    /* c_attn holds the three side by side: the rest of it is connected to its first. */
    attention->query = attention->key = attention->value = conv(width, width);
    attention->query.weight_stride = attention->key.weight_stride = attention->value.weight_stride =
        3 * width;
    attention->output = conv(width, width);
    layer->inner = conv(width, model->settings.inner);
    layer->outer = conv(model->settings.inner, width);

    char name[NAME_SIZE];
    language_declare_norm(declaration, &layer->attention_norm, part_name(name, n, "ln_1"));
    language_declare(declaration, &attention->query.weight, START_NORMAL, width, 3 * width,
                     "%s.weight", part_name(name, n, "attn.c_attn"));
    language_declare(declaration, &attention->query.bias, START_ZERO, 0, 3 * width, "%s.bias",
                     name);
    language_declare_linear(declaration, &attention->output, START_RESIDUAL,
                            part_name(name, n, "attn.c_proj"));
    language_declare_norm(declaration, &layer->inner_norm, part_name(name, n, "ln_2"));
    language_declare_linear(declaration, &layer->inner, START_NORMAL,
                            part_name(name, n, "mlp.c_fc"));
    language_declare_linear(declaration, &layer->outer, START_RESIDUAL,
                            part_name(name, n, "mlp.c_proj"));
    layer->count = model->parameters.count - layer->begin;
}

static void declare(struct language_declaration *declaration)
{
    struct language_model *model = declaration->model;
    const struct language_model_settings *settings = &model->settings;
    language_declare(declaration, &model->words, START_NORMAL, settings->vocabulary,
                     settings->width, "transformer.wte.weight");
    language_declare(declaration, &model->positions, START_NORMAL, settings->context,
                     settings->width, "transformer.wpe.weight");
    for (int64_t n = 0; n < settings->layers; n++)
        declare_layer(declaration, n);
    model->head.begin = model->parameters.count;
    language_declare_norm(declaration, &model->head.norm, "transformer.ln_f");
    model->head.count = model->parameters.count - model->head.begin;
}

/* A row of c_attn is [query | key | value]. */
static void connect(struct language_model *model)
{
    const int64_t width = model->settings.width;
    for (int64_t n = 0; n < model->settings.layers; n++) {
        struct self_attention *attention = &model->layers[n].attention;
        attention->key.weight = attention->query.weight + width;
        attention->value.weight = attention->key.weight + width;
        attention->key.bias = attention->query.bias + width;
        attention->value.bias = attention->key.bias + width;
    }
}

static void embed(struct language_pass *pass, const int32_t *ids, float *x)
{
    const struct language_model *model = pass->model;
    const int64_t width = model->settings.width;
    embedding_table_forward(pass->compute, model->words, width, pass->tokens, ids, x, GRADIENT_SET);
    embedding_table_forward(pass->compute, model->positions, width, pass->tokens,
                            pass->memory->positions, x, GRADIENT_ADD);
    pass_dropout(pass, -1, PASS_EMBEDDINGS, x);
}

static bool embed_backward(struct language_pass *pass, const int32_t *ids, float *dx,
                           struct attn_error *error)
{
    (void)error;
    const struct language_model *model = pass->model;
    const float *d_sum =
        pass_dropout_backward(pass, -1, PASS_EMBEDDINGS, dx, pass->memory->wide[0]);
    pass_table_backward(pass, model->positions, model->settings.context, pass->memory->positions,
                        d_sum, false);
    pass_table_backward(pass, model->words, model->settings.vocabulary, ids, d_sum, true);
    return true;
}

static void head(struct language_pass *pass, int64_t rows, const float *x, float *hidden)
{
    pass_norm(pass, &pass->model->head.norm, rows, x, hidden);
}

static bool head_backward(struct language_pass *pass, int64_t rows, const float *x, float *d_hidden,
                          float *dx, struct attn_error *error)
{
    return pass_norm_backward(pass, &pass->model->head.norm, rows, x, d_hidden, dx, GRADIENT_SET,
                              error);
}

static bool write_config(const struct language_model *model, const char *directory,
                         int32_t special_id, struct attn_error *error)
{
    const struct gpt2_config config = {
        .vocabulary = model->settings.vocabulary,
        .hidden = model->settings.width,
        .layers = model->settings.layers,
        .heads = model->settings.heads,
        .inner = model->settings.inner,
        .positions = model->settings.context,
        .norm_epsilon = model->details.norm_epsilon,
        .dropout = model->settings.dropout,
        .activation = model->details.activation,
    };
    return gpt2_config_write(&config, special_id, directory, error);
}

const struct language_kind language_kind_gpt2 = {
    .prefix = "transformer.",
    .details = {.activation = ACTIVATION_GELU_TANH, .norm_epsilon = 1e-5f},
    .declare = declare,
    .connect = connect,
    .embed = embed,
    .embed_backward = embed_backward,
    .layer = gpt2_layer,
    .layer_backward = gpt2_layer_backward,
    .head = head,
    .head_backward = head_backward,
    .write_config = write_config,
};
