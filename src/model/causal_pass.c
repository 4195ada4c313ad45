#include "model/causal_pass.h"

#include "model/model_check.h"

int64_t causal_projected_width(const struct causal_settings *settings)
{
    return (settings->heads + 2 * settings->key_heads) * settings->head_size;
}

int64_t causal_widest(const struct causal_settings *settings)
{
    const int64_t blended = settings->heads * settings->head_size;
    const int64_t widest = settings->width > settings->inner ? settings->width : settings->inner;
    return widest > blended ? widest : blended;
}

struct layer_norm causal_layer_norm(const struct causal_pass *pass, const struct causal_norm *norm)
{
    const struct causal_configuration *configuration = &pass->model->configuration;
    return (struct layer_norm){norm->gain, norm->shift, configuration->settings.width,
                               configuration->norm_epsilon};
}

struct rms_norm causal_rms_norm(const struct causal_pass *pass, const struct causal_norm *norm)
{
    const struct causal_configuration *configuration = &pass->model->configuration;
    return (struct rms_norm){norm->gain, configuration->settings.width,
                             configuration->norm_epsilon};
}

void causal_project(struct causal_pass *pass, const struct causal_layer *layer)
{
    const struct causal_linear *const parts[] = {&layer->query, &layer->key, &layer->value};
    const int64_t stride = causal_projected_width(&pass->model->configuration.settings);
    struct matrix_product products[3];
    float *y = pass->projected;
    for (int n = 0; n < 3; n++) {
        products[n] =
            (struct matrix_product){&parts[n]->weight, parts[n]->bias, y, stride, MATRIX_SET};
        y += parts[n]->weight.out;
    }
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, pass->normed,
                    layer->query.weight.in, products, 3);
}

/* Queries and keys lie side by side and turn alike. */
void causal_turn(const struct causal_pass *pass, rope_function *turning, float *projected)
{
    const struct causal_configuration *configuration = &pass->model->configuration;
    const struct causal_settings *settings = &configuration->settings;
    turning(&configuration->rope, pass->cosines, pass->sines, pass->tokens,
            settings->heads + settings->key_heads, causal_projected_width(settings), projected);
}

void causal_gate_and_up(const struct causal_pass *pass, const struct causal_layer *layer)
{
    const struct causal_linear *gate = &layer->gate, *up = &layer->up;
    const int64_t inner = gate->weight.out;
    const struct matrix_product products[] = {
        {&gate->weight, gate->bias, pass->gate, inner, MATRIX_SET},
        {&up->weight, up->bias, pass->up, inner, MATRIX_SET},
    };
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, pass->normed,
                    gate->weight.in, products, 2);
}

/* What attention_output.project needs. */
struct output_projection {
    const struct causal_pass *pass;
    const struct causal_linear *linear;
};

static void project_blended(const void *user, const struct compute *compute, int64_t rows,
                            const float *blended, float *y)
{
    const struct output_projection *projection = user;
    const struct weight_matrix *weight = &projection->linear->weight;
    const struct matrix_product product = {weight, NULL, y, weight->out, MATRIX_SET};
    matrix_products(compute, projection->pass->workspace, projection->pass->precision, rows,
                    blended, weight->in, &product, 1);
}

bool causal_attend(struct causal_pass *pass, int64_t n, struct attn_error *error)
{
    const struct causal_layer *layer = &pass->model->layers[n];
    const struct causal_settings *settings = &pass->model->configuration.settings;
    const int64_t stride = causal_projected_width(settings);
    const float *q = pass->projected, *k = q + layer->query.weight.out,
                *v = k + layer->key.weight.out;
    struct layer_observer bound = {pass->observer, n};
    const struct attention_observer watch = layer_observer_watch(&bound);
    const struct output_projection projection = {pass, &layer->output};
    const struct attention_output output = {layer->output.weight.out, project_blended, &projection};
    return cached_attention(pass->compute, pass->cache, n, &pass->batch, settings->heads,
                            pass->precision, q, stride, k, v, stride, pass->blended,
                            pass->observer ? pass->stats : NULL, pass->observer ? &watch : NULL,
                            &output, error);
}

void causal_add(struct causal_pass *pass, const struct causal_linear *linear, const float *y)
{
    const struct matrix_product product = {&linear->weight, linear->bias, pass->x,
                                           linear->weight.out, MATRIX_ADD};
    matrix_products(pass->compute, pass->workspace, pass->precision, pass->tokens, y,
                    linear->weight.in, &product, 1);
}

bool causal_tell(const struct causal_pass *pass, int64_t rows, const float *x, float *logits,
                 struct attn_error *error)
{
    const struct causal_model *model = pass->model;
    const int64_t vocabulary = model->head.out, width = model->head.in;
    model->kind->norm(pass, &model->final_norm, rows, x, pass->normed);
    const struct matrix_product head = {&model->head, NULL, logits, vocabulary, MATRIX_SET};
    matrix_products(pass->compute, pass->workspace, pass->precision, rows, pass->normed, width,
                    &head, 1);
    return model_check_finite(logits, rows * vocabulary, error);
}
