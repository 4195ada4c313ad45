#include "model/language_pass.h"

#include <string.h>

#include "base/clock.h"
#include "nn/dropout.h"
#include "nn/embedding_table.h"
#include "nn/row_blocks.h"

void pass_lap(struct language_pass *pass, double *seconds)
{
    if (pass->lap == 0.0)
        return;
    double time = attn_clock();
    *seconds += time - pass->lap;
    pass->lap = time;
}

void pass_begin(struct language_pass *pass)
{
    pass->times = (struct language_model_times){0};
    pass->lap = pass->step && pass->step->times ? attn_clock() : 0.0;
}

void pass_end(struct language_pass *pass)
{
    pass_lap(pass, &pass->times.rest);
    if (!pass->step || !pass->step->times)
        return;
    pass->step->times->attention += pass->times.attention;
    pass->step->times->linear += pass->times.linear;
    pass->step->times->rest += pass->times.rest;
}

void pass_linear(struct language_pass *pass, const struct linear *linear, int64_t rows,
                 const float *x, float *y)
{
    pass_lap(pass, &pass->times.rest);
    linear_forward(linear, rows, x, linear->in, y, linear->out);
    pass_lap(pass, &pass->times.linear);
}

static struct linear_gradient gradient_of_linear(const struct language_pass *pass,
                                                 const struct linear *linear)
{
    return (struct linear_gradient){
        .weight = language_gradient(pass->model, linear->weight),
        .bias = language_gradient(pass->model, linear->bias),
        .mode = pass->step->mode,
    };
}

void pass_linear_backward(struct language_pass *pass, const struct linear *linear, int64_t rows,
                          const float *x, const float *dy, float *dx, enum gradient_mode dx_mode)
{
    pass_lap(pass, &pass->times.rest);
    const struct linear_gradient gradient = gradient_of_linear(pass, linear);
    linear_backward(linear, rows, x, linear->in, dy, linear->out, dx, linear->in, dx_mode,
                    &gradient);
    pass_lap(pass, &pass->times.linear);
}

void pass_norm(struct language_pass *pass, const struct layer_norm *norm, int64_t rows,
               const float *x, float *y)
{
    layer_norm_forward(pass->compute, norm, rows, x, NULL, y);
}

bool pass_norm_backward(struct language_pass *pass, const struct layer_norm *norm, int64_t rows,
                        const float *x, const float *dy, float *dx, enum gradient_mode dx_mode,
                        struct attn_error *error)
{
    const struct layer_norm_gradient gradient = {
        .gain = language_gradient(pass->model, norm->gain),
        .shift = language_gradient(pass->model, norm->shift),
        .mode = pass->step->mode,
    };
    return layer_norm_backward(pass->compute, norm, rows, x, dy, dx, dx_mode, &gradient, error);
}

static uint64_t place_seed(const struct language_pass *pass, int64_t layer, enum pass_place place)
{
    return dropout_seed(pass->step->dropout_seed, layer + 1, place);
}

static struct attention_dropout weights_dropout(const struct language_pass *pass, int64_t n)
{
    return (struct attention_dropout){
        .rate = pass->model->settings.dropout,
        .seed = place_seed(pass, n, PASS_WEIGHTS),
        .first_sequence = pass->step->first_sequence,
    };
}

/* A self-attention layer is two things in time: attention, and its projections. */
static struct compute timed_compute(const struct language_pass *pass, double *seconds)
{
    struct compute timed = *pass->compute;
    timed.attention_seconds = pass->lap != 0.0 ? seconds : NULL;
    return timed;
}

static void split_lap(struct language_pass *pass, double attention_seconds)
{
    pass_lap(pass, &pass->times.linear);
    pass->times.linear -= attention_seconds;
    pass->times.attention += attention_seconds;
}

/* As learning does it, with the same bits, without its dropout. */
static bool attend_only(struct language_pass *pass, int64_t n, const float *x, float *y,
                        float *workspace, struct attn_error *error)
{
    const struct self_attention *attention = &pass->model->layers[n].attention;
    const int64_t width = pass->model->settings.width;
    for (int64_t t = 0; t < pass->tokens; t++)
        memcpy(y + t * width, attention->output.bias, (size_t)width * sizeof *y);
    return self_attention_forward(pass->compute, attention, pass->batch, x, y, workspace, NULL,
                                  error);
}

bool pass_attention(struct language_pass *pass, int64_t n, const float *x, float *y,
                    struct attn_error *error)
{
    float *saved = language_memory_layer(pass->memory, n).attention;
    if (!pass_learns(pass))
        return attend_only(pass, n, x, y, saved, error);
    pass_lap(pass, &pass->times.rest);
    const struct attention_dropout dropout = weights_dropout(pass, n);
    double seconds = 0.0;
    const struct compute timed = timed_compute(pass, &seconds);
    const bool done = self_attention_learn(&timed, &pass->model->layers[n].attention, pass->batch,
                                           &dropout, x, y, saved, error);
    split_lap(pass, seconds);
    return done;
}

bool pass_attention_backward(struct language_pass *pass, int64_t n, const float *x, const float *dy,
                             float *dx, enum gradient_mode dx_mode, struct attn_error *error)
{
    const struct self_attention *attention = &pass->model->layers[n].attention;
    pass_lap(pass, &pass->times.rest);
    const struct attention_dropout dropout = weights_dropout(pass, n);
    const struct self_attention_gradient gradient = {
        .query = gradient_of_linear(pass, &attention->query),
        .key = gradient_of_linear(pass, &attention->key),
        .value = gradient_of_linear(pass, &attention->value),
        .output = gradient_of_linear(pass, &attention->output),
    };
    double seconds = 0.0;
    const struct compute timed = timed_compute(pass, &seconds);
    const bool done =
        self_attention_backward(&timed, attention, pass->batch, &dropout, x,
                                language_memory_layer(pass->memory, n).attention, dy, dx, dx_mode,
                                &gradient, pass->memory->attention, error);
    split_lap(pass, seconds);
    return done;
}

static void activate(struct language_pass *pass, const float *inner)
{
    activation_apply(pass->compute, pass->model->details.activation, pass->tokens,
                     pass->model->settings.inner, inner, pass->memory->active);
}

void pass_feed_forward(struct language_pass *pass, int64_t n, const float *x, float *y)
{
    const struct language_layer *layer = &pass->model->layers[n];
    float *inner = language_memory_layer(pass->memory, n).inner;
    pass_linear(pass, &layer->inner, pass->tokens, x, inner);
    activate(pass, inner);
    pass_linear(pass, &layer->outer, pass->tokens, pass->memory->active, y);
}

void pass_feed_forward_backward(struct language_pass *pass, int64_t n, const float *x,
                                const float *dy, float *dx, enum gradient_mode dx_mode)
{
    const struct language_layer *layer = &pass->model->layers[n];
    const float *inner = language_memory_layer(pass->memory, n).inner;
    float *d_active = pass->memory->d_active;
    activate(pass, inner);
    pass_linear_backward(pass, &layer->outer, pass->tokens, pass->memory->active, dy, d_active,
                         GRADIENT_SET);
    activation_backward(pass->compute, pass->model->details.activation, pass->tokens,
                        pass->model->settings.inner, inner, d_active, d_active);
    pass_linear_backward(pass, &layer->inner, pass->tokens, x, d_active, dx, dx_mode);
}

static struct dropout dropout_at(const struct language_pass *pass, int64_t layer,
                                 enum pass_place place)
{
    return (struct dropout){
        .rate = pass->model->settings.dropout,
        .seed = place_seed(pass, layer, place),
        .first_row = pass->step->first_token,
    };
}

void pass_dropout(struct language_pass *pass, int64_t layer, enum pass_place place, float *x)
{
    if (!pass_learns(pass) || pass->model->settings.dropout == 0.0f)
        return;
    const struct dropout dropout = dropout_at(pass, layer, place);
    dropout_apply(pass->compute, &dropout, pass->tokens, pass->model->settings.width, x, x);
}

const float *pass_dropout_backward(struct language_pass *pass, int64_t layer, enum pass_place place,
                                   const float *dy, float *masked)
{
    if (pass->model->settings.dropout == 0.0f)
        return dy;
    const struct dropout dropout = dropout_at(pass, layer, place);
    dropout_apply(pass->compute, &dropout, pass->tokens, pass->model->settings.width, dy, masked);
    return masked;
}

struct addition {
    int64_t width;
    const float *x, *y;
    float *sum;
};

static void add_rows(const void *user, int64_t first, int64_t count)
{
    const struct addition *addition = user;
    const float *x = addition->x, *y = addition->y;
    for (int64_t i = first * addition->width; i < (first + count) * addition->width; i++)
        addition->sum[i] = x[i] + y[i];
}

void pass_add(struct language_pass *pass, const float *x, const float *y, float *sum)
{
    const int64_t width = pass->model->settings.width;
    const struct addition addition = {width, x, y, sum};
    row_blocks_for(pass->compute, pass->tokens, width, add_rows, &addition);
}

void pass_table_backward(struct language_pass *pass, const float *table, int64_t rows,
                         const int32_t *ids, const float *dx, bool is_head)
{
    const int64_t width = pass->model->settings.width;
    float *gradient = language_gradient(pass->model, table);
    if (!is_head && pass->step->mode == GRADIENT_SET)
        memset(gradient, 0, (size_t)(rows * width) * sizeof *gradient);
    embedding_table_backward(pass->compute, width, pass->tokens, ids, dx, gradient);
}

void pass_ready(struct language_pass *pass, int64_t begin, int64_t count)
{
    if (pass->step->ready)
        pass->step->ready(pass->step->user, begin, count);
}
