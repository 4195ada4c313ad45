/* A GPT-2 or Llama forward, keeping what each layer reads, and back from the logits of the token
 * behind the text. A layer, and its way back:
 *
 *     m = x + Wo·attention(norm₁(x)) + bo     y = m + inner(norm₂(m))
 *
 *     dm = dy + norm₂′(inner′(dy))     dO = dm·Wo     dx = dm + norm₁′(dq·Wq + dk·Wk + dv·Wv)
 *
 * The steps forward are those of causal_pass.h in the order of causal_gpt2.c and causal_llama.c, so
 * that the numbers are theirs. */
#include "model/causal_gradient.h"

#include <math.h>
#include <string.h>

#include "model/causal_gradient_parts.h"
#include "model/likeliest.h"
#include "model/model_check.h"
#include "model/text_gradient_memory.h"
#include "model/text_gradient_show.h"
#include "nn/matrix_backward.h"

static void lay_out(struct causal_gradient *gradient, struct attn_scratch *memory)
{
    const struct causal_settings *settings = &gradient->pass.model->configuration.settings;
    const bool llama = settings->kind == MODEL_LLAMA;
    const int64_t pairs = llama ? settings->head_size / 2 : 0;
    struct causal_pass *pass = &gradient->pass;
    const int64_t tokens = pass->tokens, width = settings->width, inner = settings->inner;
    gradient->read = attn_scratch_floats(memory, settings->layers, tokens * width);
    pass->x = attn_scratch_floats(memory, tokens, width);
    pass->normed = attn_scratch_floats(memory, tokens, width);
    pass->gate = attn_scratch_floats(memory, tokens, llama ? inner : 0);
    pass->up = attn_scratch_floats(memory, tokens, inner);
    pass->cosines = attn_scratch_floats(memory, tokens, pairs);
    pass->sines = attn_scratch_floats(memory, tokens, pairs);
    gradient->dx = attn_scratch_floats(memory, tokens, width);
    gradient->d_normed = attn_scratch_floats(memory, tokens, width);
    gradient->d_gate = attn_scratch_floats(memory, tokens, llama ? inner : 0);
    gradient->d_up = attn_scratch_floats(memory, tokens, inner);
    gradient->logits = attn_scratch_floats(memory, 1, settings->vocabulary);
    gradient->unpacked =
        attn_scratch_floats(memory, 1, matrix_backward_workspace(causal_widest(settings)));
    projected_attention_lay_out(&gradient->attention, memory);
    pass->projected = gradient->attention.projected;
    pass->blended = gradient->attention.blended;
}

static float *read_by(const struct causal_gradient *gradient, int64_t layer)
{
    const struct causal_pass *pass = &gradient->pass;
    return gradient->read + layer * pass->tokens * pass->model->configuration.settings.width;
}

/* Bytes of one sum. */
static size_t sum_bytes(const struct causal_gradient *gradient)
{
    const struct causal_pass *pass = &gradient->pass;
    return (size_t)(pass->tokens * pass->model->configuration.settings.width) * sizeof(float);
}

/* What the first layer reads: words and, in GPT-2, positions; for Llama the angles of each. */
static void embed(struct causal_gradient *gradient, const int32_t *ids)
{
    const struct causal_pass *pass = &gradient->pass;
    const struct causal_model *model = pass->model;
    const int64_t width = model->configuration.settings.width;
    for (int64_t t = 0; t < pass->tokens; t++) {
        float *x = gradient->read + t * width;
        weight_matrix_row(pass->compute, &model->words, ids[t], x);
        if (!model->positions.data)
            continue;
        weight_matrix_row(pass->compute, &model->positions, t, pass->normed);
        for (int64_t c = 0; c < width; c++)
            x[c] += pass->normed[c];
    }
    if (!model->positions.data)
        rope_table(&model->configuration.rope, 0, pass->tokens, pass->cosines, pass->sines);
}

/* All that layer n makes of what it reads, up to gate and up. */
static bool run_inside(struct causal_gradient *gradient, int64_t n, struct attn_error *error)
{
    struct causal_pass *pass = &gradient->pass;
    const struct causal_model *model = pass->model;
    const struct causal_layer *layer = &model->layers[n];
    memcpy(pass->x, read_by(gradient, n), sum_bytes(gradient));
    model->kind->norm(pass, &layer->attention_norm, pass->tokens, pass->x, pass->normed);
    causal_project(pass, layer);
    if (gradient->kind->turns)
        causal_turn(pass, rope_turn, pass->projected);
    if (!projected_attention_forward(&gradient->attention, error))
        return false;
    causal_add(pass, &layer->output, pass->blended);
    model->kind->norm(pass, &layer->inner_norm, pass->tokens, pass->x, pass->normed);
    gradient->kind->inner(gradient, layer);
    return true;
}

/* x behind the last layer stays in pass.x. */
static bool run_forward(struct causal_gradient *gradient, const int32_t *ids,
                        struct attn_error *error)
{
    struct causal_pass *pass = &gradient->pass;
    const struct causal_settings *settings = &pass->model->configuration.settings;
    embed(gradient, ids);
    for (int64_t n = 0; n < settings->layers; n++) {
        if (!run_inside(gradient, n, error))
            return false;
        gradient->kind->activate(gradient);
        causal_add(pass, &pass->model->layers[n].down, gradient->d_up);
        if (n + 1 < settings->layers)
            memcpy(read_by(gradient, n + 1), pass->x, sum_bytes(gradient));
    }
    return model_check_finite(pass->x, pass->tokens * settings->width, error);
}

/* y = ln p(id), and from the logits their gradient: 1 − p at id, else −p. With the largest logit
 * as id, 1/p is 1 and the other terms' sum: nothing cancels where p is near 1. */
static double next_word(float *logits, int64_t vocabulary, int32_t id)
{
    const double largest = (double)logits[id];
    double others = 0.0;
    for (int64_t c = 0; c < vocabulary; c++)
        others += c == id ? 0.0 : exp((double)logits[c] - largest);
    for (int64_t c = 0; c < vocabulary; c++)
        logits[c] = (float)(-exp((double)logits[c] - largest) / (1.0 + others));
    logits[id] = (float)(others / (1.0 + others));
    return -log1p(others);
}

/* y from x behind the last layer, and its gradient by that x, which only the last row has. */
static bool turn_round(struct causal_gradient *gradient, struct gradient_subject *subject,
                       struct attn_error *error)
{
    const struct causal_pass *pass = &gradient->pass;
    const struct causal_model *model = pass->model;
    const int64_t width = model->head.in, vocabulary = model->head.out;
    const int64_t last = (pass->tokens - 1) * width;
    if (!causal_tell(pass, 1, pass->x + last, gradient->logits, error))
        return false;
    struct candidate next;
    likeliest_select(gradient->logits, vocabulary, 1, &next);
    *subject = (struct gradient_subject){
        .target = GRADIENT_NEXT_WORD,
        .id = next.id,
        .value = next_word(gradient->logits, vocabulary, next.id),
    };
    memset(gradient->dx, 0, sum_bytes(gradient));
    matrix_backward(pass->compute, &model->head, 1, gradient->logits, vocabulary,
                    gradient->d_normed, width, GRADIENT_SET, gradient->unpacked);
    return gradient->kind->norm_backward(gradient, &model->final_norm, 1, pass->x + last,
                                         gradient->d_normed, gradient->dx + last, GRADIENT_SET,
                                         error);
}

/* dx = dy·W, dy[tokens][width] packed. */
static void back_through(const struct causal_gradient *gradient, const struct causal_linear *linear,
                         const float *dy, float *dx)
{
    const struct weight_matrix *weight = &linear->weight;
    matrix_backward(gradient->pass.compute, weight, gradient->pass.tokens, dy, weight->out, dx,
                    weight->in, GRADIENT_SET, gradient->unpacked);
}

void causal_gradient_through(const struct causal_gradient *gradient,
                             const struct weight_matrix *weight, const float *dy, int64_t dy_stride,
                             enum gradient_mode mode)
{
    matrix_backward(gradient->pass.compute, weight, gradient->pass.tokens, dy, dy_stride,
                    gradient->d_normed, weight->in, mode, gradient->unpacked);
}

/* d_normed of the first half from the gradients of q, k and v. */
static void project_back(const struct causal_gradient *gradient, const struct causal_layer *layer)
{
    const struct causal_linear *const parts[] = {&layer->query, &layer->key, &layer->value};
    const int64_t stride = projected_attention_width(&gradient->attention);
    const float *dy = gradient->attention.d_projected;
    for (int p = 0; p < 3; p++) {
        causal_gradient_through(gradient, &parts[p]->weight, dy, stride,
                                p == 0 ? GRADIENT_SET : GRADIENT_ADD);
        dy += parts[p]->weight.out;
    }
}

/* dx is that of the layer's result, then that of what it has read. What the first layer reads
 * depends on no attention: there the way ends with what is shown. */
static bool run_backward(struct causal_gradient *gradient, int64_t n, struct attn_error *error)
{
    const struct causal_pass *pass = &gradient->pass;
    const struct causal_layer *layer = &pass->model->layers[n];
    const struct projected_attention *attention = &gradient->attention;
    if (!run_inside(gradient, n, error))
        return false;
    back_through(gradient, &layer->down, gradient->dx, gradient->d_up);
    gradient->kind->inner_backward(gradient, layer);
    if (!gradient->kind->norm_backward(gradient, &layer->inner_norm, pass->tokens, pass->x,
                                       gradient->d_normed, gradient->dx, GRADIENT_ADD, error))
        return false;
    back_through(gradient, &layer->output, gradient->dx, attention->d_blended);
    if (!text_gradient_show(attention, n, gradient->observer, error))
        return false;
    if (n == 0)
        return true;
    if (!projected_attention_backward(attention, error))
        return false;
    if (gradient->kind->turns)
        causal_turn(pass, rope_turn_back, attention->d_projected);
    project_back(gradient, layer);
    return gradient->kind->norm_backward(gradient, &layer->attention_norm, pass->tokens,
                                         read_by(gradient, n), gradient->d_normed, gradient->dx,
                                         GRADIENT_ADD, error);
}

static bool run(struct causal_gradient *gradient, const int32_t *ids,
                struct gradient_subject *subject, struct attn_error *error)
{
    bool done = run_forward(gradient, ids, error) && turn_round(gradient, subject, error);
    for (int64_t n = gradient->pass.model->configuration.settings.layers - 1; done && n >= 0; n--)
        done = run_backward(gradient, n, error);
    return done;
}

bool causal_gradient_run(const struct causal_model *model, const struct compute *compute,
                         int64_t tokens, const int32_t *ids,
                         const struct gradient_observer *observer, struct gradient_subject *subject,
                         struct attn_error *error)
{
    const struct causal_settings *settings = &model->configuration.settings;
    const int64_t starts[] = {0, tokens};
    const struct packed_batch batch = {1, starts};
    if (!model_check_batch(&batch, settings->context, error) ||
        !model_check_ids(ids, tokens, settings->vocabulary, error))
        return false;
    struct causal_gradient gradient = {
        .pass = {.model = model,
                 .compute = compute,
                 .precision = ATTN_PRECISION_EXACT,
                 .tokens = tokens},
        .attention = {.compute = compute,
                      .tokens = tokens,
                      .heads = settings->heads,
                      .key_heads = settings->key_heads,
                      .d = settings->head_size,
                      .sight = SELF_ATTENTION_CAUSAL},
        .kind = settings->kind == MODEL_LLAMA ? &causal_gradient_llama : &causal_gradient_gpt2,
        .observer = observer,
    };
    struct attn_workspace workspace = {0};
    struct attn_scratch counted = {0}, memory;
    lay_out(&gradient, &counted);
    if (!text_gradient_memory_reserve(&workspace, &counted, tokens, &memory, error))
        return false;
    lay_out(&gradient, &memory);
    const bool done = matrix_workspace_create(&gradient.pass.workspace, compute, tokens,
                                              causal_widest(settings), error) &&
                      run(&gradient, ids, subject, error);
    matrix_workspace_destroy(gradient.pass.workspace);
    attn_workspace_release(&workspace, &attn_allocator_default);
    return done;
}
