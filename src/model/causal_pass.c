#include "model/causal_pass.h"

int64_t causal_projected_width(const struct causal_settings *settings)
{
    return (settings->heads + 2 * settings->key_heads) * settings->head_size;
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
