#include "model/language_head.h"

#include <string.h>

/* The last layer's output. */
static const float *last_output(const struct language_pass *pass)
{
    return language_memory_layer(pass->memory, pass->model->settings.layers - 1).next;
}

/* logits = hidden·wordsᵀ + bias: the head shares its matrix with the embedding (O. Press, L. Wolf,
 * "Using the Output Embedding to Improve Language Models" (2017)). */
static struct linear projection(const struct language_model *model)
{
    return (struct linear){
        .weight = model->words,
        .bias = model->head.bias,
        .in = model->settings.width,
        .out = model->settings.vocabulary,
        .layout = LINEAR_OUT_IN,
    };
}

/* memory->rows and memory->labels of the tokens that have a label; how many they are. */
static int64_t pick_rows(struct language_pass *pass, const int32_t *labels)
{
    struct language_memory *memory = pass->memory;
    int64_t count = 0;
    for (int64_t t = 0; t < pass->tokens; t++)
        if (labels[t] != CROSS_ENTROPY_IGNORE) {
            memory->rows[count] = t;
            memory->labels[count++] = labels[t];
        }
    return count;
}

static void gather(const struct language_pass *pass, int64_t count, const float *x, float *picked)
{
    const int64_t width = pass->model->settings.width;
    for (int64_t r = 0; r < count; r++)
        memcpy(picked + r * width, x + pass->memory->rows[r] * width, (size_t)width * sizeof *x);
}

/* The way back; tokens without a label have no part in the loss. */
static void scatter(const struct language_pass *pass, int64_t count, const float *picked, float *x)
{
    const int64_t width = pass->model->settings.width;
    memset(x, 0, (size_t)(pass->tokens * width) * sizeof *x);
    for (int64_t r = 0; r < count; r++)
        memcpy(x + pass->memory->rows[r] * width, picked + r * width, (size_t)width * sizeof *x);
}

/* The gradients of logits[rows][vocabulary], which become those of hidden and of the projection. */
static void project_back(struct language_pass *pass, const struct linear *linear, int64_t rows,
                         const float *hidden, const float *d_logits, float *d_hidden,
                         enum gradient_mode mode)
{
    const struct linear_gradient gradient = {
        .weight = language_gradient(pass->model, linear->weight),
        .bias = language_gradient(pass->model, linear->bias),
        .mode = mode,
    };
    linear_backward(linear, rows, hidden, linear->in, d_logits, pass->memory->logit_stride,
                    d_hidden, linear->in, GRADIENT_SET, &gradient);
}

/* Block by block: logits, losses, and in place of the logits their gradient. */
static bool lose(struct language_pass *pass, int64_t rows, const float *hidden, float *d_hidden,
                 struct cross_entropy *sum, struct attn_error *error)
{
    const struct linear linear = projection(pass->model);
    struct language_memory *memory = pass->memory;
    for (int64_t first = 0; first < rows; first += memory->logit_rows) {
        int64_t count = rows - first < memory->logit_rows ? rows - first : memory->logit_rows;
        const float *x = hidden + first * linear.in;

        pass_lap(pass, &pass->times.rest);
        linear_forward(&linear, count, x, linear.in, memory->logits, memory->logit_stride);
        pass_lap(pass, &pass->times.linear);
        if (!cross_entropy_add(pass->compute, count, linear.out, memory->logits,
                               memory->logit_stride, memory->labels + first,
                               pass->step ? pass->step->gradient_scale : 0.0f,
                               pass->step ? memory->logits : NULL, sum, error))
            return false;
        if (!pass->step)
            continue;
        pass_lap(pass, &pass->times.rest);
        project_back(pass, &linear, count, x, memory->logits, d_hidden + first * linear.in,
                     first == 0 ? pass->step->mode : GRADIENT_ADD);
        pass_lap(pass, &pass->times.linear);
    }
    return true;
}

/* A batch without any label: its gradient is 0. */
static void clear_gradients(const struct language_pass *pass)
{
    const struct language_model *model = pass->model;
    if (pass->step->mode == GRADIENT_ADD)
        return;
    memset(language_gradient(model, model->words), 0,
           (size_t)(model->settings.vocabulary * model->settings.width) * sizeof(float));
    memset(model->parameters.gradients + model->head.begin, 0,
           (size_t)model->head.count * sizeof(float));
}

bool language_head_lose(struct language_pass *pass, const int32_t *labels,
                        struct cross_entropy *sum, struct attn_error *error)
{
    const struct language_model *model = pass->model;
    float *x = pass->memory->wide[0], *hidden = pass->memory->wide[1],
          *d_hidden = pass->memory->wide[2], *dx = hidden;
    const int64_t rows = pick_rows(pass, labels);

    if (rows > 0) {
        gather(pass, rows, last_output(pass), x);
        model->kind->head(pass, rows, x, hidden);
        if (!lose(pass, rows, hidden, d_hidden, sum, error))
            return false;
    }
    if (!pass->step)
        return true;
    if (rows == 0)
        clear_gradients(pass);
    else if (!model->kind->head_backward(pass, rows, x, d_hidden, dx, error))
        return false;
    scatter(pass, rows, dx, pass->memory->dx);
    pass_ready(pass, model->head.begin, model->head.count);
    return true;
}

void language_head_tell(struct language_pass *pass, const int64_t *places, int64_t count,
                        float *logits)
{
    float *x = pass->memory->wide[0];
    memcpy(pass->memory->rows, places, (size_t)count * sizeof *places);
    gather(pass, count, last_output(pass), x);
    language_head_tell_rows(pass, x, count, logits);
}

void language_head_tell_rows(struct language_pass *pass, const float *x, int64_t count,
                             float *logits)
{
    const struct linear linear = projection(pass->model);
    float *hidden = pass->memory->wide[1];
    pass->model->kind->head(pass, count, x, hidden);
    linear_forward(&linear, count, hidden, linear.in, logits, linear.out);
}
