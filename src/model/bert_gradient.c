/* A BERT forward, keeping what each layer reads, and back from its last hidden states. A layer, and
 * its way back:
 *
 *     a = x + Wo·attention(x) + bo     m = norm₁(a)
 *     u = W₁·m + b₁     e = m + W₂·activation(u) + b₂     y = norm₂(e)
 *
 *     de = norm₂′(dy)     du = activation′(u)∘(de·W₂)     dm = de + du·W₁
 *     da = norm₁′(dm)     dO = da·Wo     dx = da + dq·Wq + dk·Wk + dv·Wv
 *
 * Sums are added up in the order of bert.c, so that the numbers are those of bert_forward. */
#include "model/bert_gradient.h"

#include <string.h>

#include "model/bert_parts.h"
#include "model/model_check.h"
#include "model/text_gradient_memory.h"
#include "model/text_gradient_show.h"

struct bert_gradient {
    const struct bert *model;
    const struct compute *compute;
    int64_t tokens;
    const struct gradient_observer *observer;

    float *read;           /* [layers][tokens][hidden]: x of each layer */
    float *middle, *end;   /* [tokens][hidden]: a and e */
    float *inner, *active; /* [tokens][inner]: u, and activation(u) or its gradient */
    float *dx; /* [tokens][hidden]: the last hidden states, then the gradients of y, e, m, a and x
                  in turn */
    struct projected_attention attention;
};

static void lay_out(struct bert_gradient *gradient, struct attn_scratch *memory)
{
    const struct bert_config *config = &gradient->model->config;
    const int64_t tokens = gradient->tokens;
    gradient->read = attn_scratch_floats(memory, config->layers, tokens * config->hidden);
    gradient->middle = attn_scratch_floats(memory, tokens, config->hidden);
    gradient->end = attn_scratch_floats(memory, tokens, config->hidden);
    gradient->inner = attn_scratch_floats(memory, tokens, config->inner);
    gradient->active = attn_scratch_floats(memory, tokens, config->inner);
    gradient->dx = attn_scratch_floats(memory, tokens, config->hidden);
    projected_attention_lay_out(&gradient->attention, memory);
}

static float *read_by(const struct bert_gradient *gradient, int64_t layer)
{
    return gradient->read + layer * gradient->tokens * gradient->model->config.hidden;
}

static void add_bias(int64_t rows, const struct linear *layer, float *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < layer->out; c++)
            y[i * layer->out + c] += layer->bias[c];
}

/* q | k | v, part by part in rows of three. */
static void project(const struct bert_gradient *gradient, const struct self_attention *attention,
                    const float *x)
{
    const struct linear *const parts[] = {&attention->query, &attention->key, &attention->value};
    const int64_t stride = projected_attention_width(&gradient->attention);
    float *y = gradient->attention.projected;
    for (int n = 0; n < 3; n++) {
        linear_forward(parts[n], gradient->tokens, x, parts[n]->in, y, stride);
        y += parts[n]->out;
    }
}

/* All that layer n makes of x, up to `end`. */
static bool run_inside(const struct bert_gradient *gradient, int64_t n, struct attn_error *error)
{
    const struct bert_layer *layer = &gradient->model->weights.layers[n];
    const struct linear *output = &layer->attention.output, *inner = &layer->intermediate;
    const int64_t tokens = gradient->tokens, hidden = gradient->model->config.hidden;
    const float *x = read_by(gradient, n);

    project(gradient, &layer->attention, x);
    if (!projected_attention_forward(&gradient->attention, error))
        return false;
    memcpy(gradient->middle, x, (size_t)(tokens * hidden) * sizeof *x);
    linear_accumulate(output, tokens, gradient->attention.blended, output->in, gradient->middle,
                      hidden);
    add_bias(tokens, output, gradient->middle);
    layer_norm_forward(gradient->compute, &layer->attention_norm, tokens, gradient->middle, NULL,
                       gradient->end);

    linear_product(inner, tokens, gradient->end, hidden, gradient->inner, inner->out);
    add_bias(tokens, inner, gradient->inner);
    activation_apply(gradient->compute, gradient->model->config.activation, tokens, inner->out,
                     gradient->inner, gradient->active);
    linear_accumulate(&layer->output, tokens, gradient->active, inner->out, gradient->end, hidden);
    add_bias(tokens, &layer->output, gradient->end);
    return true;
}

static bool run_forward(const struct bert_gradient *gradient, const struct bert_input *input,
                        struct attn_error *error)
{
    const int64_t layers = gradient->model->config.layers, tokens = gradient->tokens;
    bert_embed(gradient->model, gradient->compute, input, gradient->read);
    for (int64_t n = 0; n < layers; n++) {
        const struct bert_layer *layer = &gradient->model->weights.layers[n];
        if (!run_inside(gradient, n, error))
            return false;
        layer_norm_forward(gradient->compute, &layer->output_norm, tokens, gradient->end, NULL,
                           n + 1 < layers ? read_by(gradient, n + 1) : gradient->dx);
    }
    return model_check_finite(gradient->dx, tokens * gradient->model->config.hidden, error);
}

/* y = ½·Σ e², e the mean over tokens: ∂y/∂h of each token's hidden state is e / tokens. */
static double turn_round(const struct bert_gradient *gradient)
{
    const int64_t tokens = gradient->tokens, hidden = gradient->model->config.hidden;
    double value = 0.0;
    for (int64_t c = 0; c < hidden; c++) {
        double mean = 0.0;
        for (int64_t t = 0; t < tokens; t++)
            mean += (double)gradient->dx[t * hidden + c];
        mean /= (double)tokens;
        value += 0.5 * mean * mean;
        for (int64_t t = 0; t < tokens; t++)
            gradient->dx[t * hidden + c] = (float)(mean / (double)tokens);
    }
    return value;
}

/* dx = or += dy·W */
static void back_through(const struct bert_gradient *gradient, const struct linear *layer,
                         const float *dy, int64_t dy_stride, float *dx, enum gradient_mode mode)
{
    const struct linear_gradient none = {0};
    linear_backward(layer, gradient->tokens, NULL, 0, dy, dy_stride, dx, layer->in, mode, &none);
}

static bool back_through_norm(const struct bert_gradient *gradient, const struct layer_norm *norm,
                              const float *x, struct attn_error *error)
{
    const struct layer_norm_gradient none = {0};
    return layer_norm_backward(gradient->compute, norm, gradient->tokens, x, gradient->dx,
                               gradient->dx, GRADIENT_SET, &none, error);
}

/* dx is that of the layer's result, then that of `middle`. */
static bool back_to_middle(const struct bert_gradient *gradient, const struct bert_layer *layer,
                           struct attn_error *error)
{
    const int64_t inner = layer->intermediate.out;
    float *d_inner = gradient->active;
    if (!back_through_norm(gradient, &layer->output_norm, gradient->end, error))
        return false;
    back_through(gradient, &layer->output, gradient->dx, layer->output.out, d_inner, GRADIENT_SET);
    activation_backward(gradient->compute, gradient->model->config.activation, gradient->tokens,
                        inner, gradient->inner, d_inner, d_inner);
    back_through(gradient, &layer->intermediate, d_inner, inner, gradient->dx, GRADIENT_ADD);
    return back_through_norm(gradient, &layer->attention_norm, gradient->middle, error);
}

/* dx is that of the layer's result, then that of x. What the first layer reads depends on no
 * attention: there the way ends with what is shown. */
static bool run_backward(const struct bert_gradient *gradient, int64_t n, struct attn_error *error)
{
    const struct bert_layer *layer = &gradient->model->weights.layers[n];
    const struct self_attention *part = &layer->attention;
    const struct projected_attention *attention = &gradient->attention;
    const int64_t stride = projected_attention_width(attention);
    if (!run_inside(gradient, n, error) || !back_to_middle(gradient, layer, error))
        return false;
    back_through(gradient, &part->output, gradient->dx, part->output.out, attention->d_blended,
                 GRADIENT_SET);
    if (!text_gradient_show(attention, n, gradient->observer, error))
        return false;
    if (n == 0)
        return true;
    if (!projected_attention_backward(attention, error))
        return false;
    const struct linear *const parts[] = {&part->query, &part->key, &part->value};
    const float *dy = attention->d_projected;
    for (int p = 0; p < 3; p++) {
        back_through(gradient, parts[p], dy, stride, gradient->dx, GRADIENT_ADD);
        dy += parts[p]->out;
    }
    return true;
}

bool bert_gradient_run(const struct bert *model, const struct compute *compute,
                       const struct bert_input *input, const struct gradient_observer *observer,
                       struct gradient_subject *subject, struct attn_error *error)
{
    if (!bert_check_input(model, input, error))
        return false;
    const struct bert_config *config = &model->config;
    const int64_t tokens = packed_batch_tokens(&input->batch);
    struct bert_gradient gradient = {
        .model = model,
        .compute = compute,
        .tokens = tokens,
        .observer = observer,
        .attention = {.compute = compute,
                      .tokens = tokens,
                      .heads = config->heads,
                      .key_heads = config->heads,
                      .d = config->hidden / config->heads,
                      .sight = SELF_ATTENTION_ALL},
    };
    struct attn_workspace workspace = {0};
    struct attn_scratch counted = {0}, memory;
    lay_out(&gradient, &counted);
    if (!text_gradient_memory_reserve(&workspace, &counted, tokens, &memory, error))
        return false;
    lay_out(&gradient, &memory);

    bool done = run_forward(&gradient, input, error);
    if (done)
        *subject =
            (struct gradient_subject){.target = GRADIENT_EMBEDDING, .value = turn_round(&gradient)};
    for (int64_t n = config->layers - 1; done && n >= 0; n--)
        done = run_backward(&gradient, n, error);
    attn_workspace_release(&workspace, &attn_allocator_default);
    return done;
}
