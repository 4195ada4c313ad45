#include "self_attention_learner.h"

#include <math.h>
#include <stdlib.h>

#include "cmocka_test.h"

enum { GAP = 3 };

static float *new_numbers(int64_t count)
{
    float *numbers = malloc((size_t)count * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t n = 0; n < count; n++)
        numbers[n] = NAN;
    return numbers;
}

static bool is_in_out(enum arrangement arrangement)
{
    return arrangement == SEPARATE_IN_OUT || arrangement == PACKED_IN_OUT;
}

static bool is_packed(enum arrangement arrangement)
{
    return arrangement != SEPARATE && arrangement != SEPARATE_IN_OUT;
}

/* Finds the place of each parameter; `gap` numbers lie between parts that are not packed. Returns
 * the size of the block. */
static int64_t lay_out(const struct learner_settings *settings, bool packed, float *block,
                       struct learner_place places[REFERENCE_PROJECTIONS])
{
    const int64_t width = settings->width, inner = settings->heads * settings->d;
    const int64_t gap = packed ? 0 : GAP, matrix = width * inner;
    const int64_t bias_gap = settings->arrangement == PACKED_BIASES_APART ? GAP : gap;
    const int64_t step = packed && is_in_out(settings->arrangement) ? inner : matrix + gap;
    const int64_t output = GAP + 3 * (matrix + gap) + GAP, biases = output + matrix + GAP;
    const int64_t output_bias = biases + 3 * (inner + bias_gap) + GAP;
    if (block) {
        for (int n = 0; n < REFERENCE_OUTPUT; n++)
            places[n] = (struct learner_place){block + GAP + n * step,
                                               block + biases + n * (inner + bias_gap)};
        places[REFERENCE_OUTPUT] = (struct learner_place){block + output, block + output_bias};
    }
    return output_bias + width + GAP;
}

static void make_blocks(struct learner *learner)
{
    const struct learner_settings *settings = &learner->settings;
    for (int block = 0; block < LEARNER_BLOCKS; block++) {
        bool packed =
            is_packed(settings->arrangement) &&
            !(block == LEARNER_GRADIENTS && settings->arrangement == PACKED_GRADIENTS_APART);
        learner->blocks[block] = new_numbers(lay_out(settings, packed, NULL, NULL));
        lay_out(settings, packed, learner->blocks[block], learner->places[block]);
    }
}

static struct linear make_linear(const struct learner *learner, int projection)
{
    const struct learner_settings *settings = &learner->settings;
    const int64_t width = settings->width, inner = settings->heads * settings->d;
    const bool output = projection == REFERENCE_OUTPUT;
    const struct learner_place *place = &learner->places[LEARNER_VALUES][projection];
    return (struct linear){
        .weight = place->weight,
        .bias = place->bias,
        .in = output ? inner : width,
        .out = output ? width : inner,
        .layout = is_in_out(settings->arrangement) ? LINEAR_IN_OUT : LINEAR_OUT_IN,
        .weight_stride = settings->arrangement == PACKED_IN_OUT && !output ? 3 * inner : 0,
    };
}

static struct linear_gradient make_gradient(const struct learner *learner, int projection)
{
    const struct learner_place *place = &learner->places[LEARNER_GRADIENTS][projection];
    return (struct linear_gradient){.weight = place->weight, .bias = place->bias};
}

static void make_layer(struct learner *learner)
{
    learner->layer = (struct self_attention){
        .query = make_linear(learner, REFERENCE_QUERY),
        .key = make_linear(learner, REFERENCE_KEY),
        .value = make_linear(learner, REFERENCE_VALUE),
        .output = make_linear(learner, REFERENCE_OUTPUT),
        .heads = learner->settings.heads,
        .sight = learner->settings.sight,
    };
    learner->gradient = (struct self_attention_gradient){
        .query = make_gradient(learner, REFERENCE_QUERY),
        .key = make_gradient(learner, REFERENCE_KEY),
        .value = make_gradient(learner, REFERENCE_VALUE),
        .output = make_gradient(learner, REFERENCE_OUTPUT),
    };
}

/* The reference's numbers, and where each kind begins. */
static void lay_out_reference(struct learner *learner)
{
    const struct learner_settings *settings = &learner->settings;
    const int64_t width = settings->width, inner = settings->heads * settings->d;
    int64_t *begin = learner->begin;
    for (int n = 0; n < REFERENCE_PROJECTIONS; n++) {
        begin[n] = n * width * inner;
        begin[LEARNER_BIASES + n] = REFERENCE_PROJECTIONS * width * inner + n * inner;
    }
    begin[LEARNER_X] = begin[LEARNER_BIASES + REFERENCE_OUTPUT] + width;
    begin[LEARNER_END] = begin[LEARNER_X] + packed_batch_tokens(&settings->batch) * width;
    learner->number_count = begin[LEARNER_END];
    learner->numbers = malloc((size_t)begin[LEARNER_END] * sizeof *learner->numbers);
    assert_non_null(learner->numbers);
    learner->reference = (struct reference_layer){
        .width = width,
        .heads = settings->heads,
        .d = settings->d,
        .causal = settings->sight == SELF_ATTENTION_CAUSAL,
        .dropout = settings->dropout,
    };
    for (int n = 0; n < REFERENCE_PROJECTIONS; n++) {
        learner->reference.weight[n] = learner->numbers + begin[n];
        learner->reference.bias[n] = learner->numbers + begin[LEARNER_BIASES + n];
    }
}

float *learner_number(const struct learner *learner, enum learner_block block, int64_t number)
{
    int kind = 0;
    while (number >= learner->begin[kind + 1])
        kind++;
    const int64_t at = number - learner->begin[kind];
    if (kind >= LEARNER_BIASES)
        return learner->places[block][kind - LEARNER_BIASES].bias + at;
    const struct linear layer = make_linear(learner, kind);
    const int64_t o = at / layer.in, i = at % layer.in;
    float *weight = learner->places[block][kind].weight;
    if (layer.layout == LINEAR_OUT_IN)
        return weight + o * layer.in + i;
    return weight + i * (layer.weight_stride ? layer.weight_stride : layer.out) + o;
}

struct learner make_learner(const struct learner_settings *settings)
{
    struct learner learner = {.settings = *settings};
    const int64_t width = settings->width;
    const int64_t tokens = packed_batch_tokens(&settings->batch);
    make_blocks(&learner);
    make_layer(&learner);
    lay_out_reference(&learner);

    float **const rows[] = {&learner.x, &learner.dy, &learner.y, &learner.dx};
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++)
        *rows[n] = new_numbers(tokens * width);
    learner.saved = new_numbers(self_attention_workspace(&learner.layer, tokens));
    learner.workspace = new_numbers(self_attention_backward_workspace(&learner.layer, tokens));

    for (int64_t n = 0; n < learner.begin[LEARNER_X]; n++) {
        float scale = n < learner.begin[LEARNER_BIASES] ? 1.5f / sqrtf((float)width) : 0.3f;
        float number = scale * sinf((float)(n * n % 9973));
        *learner_number(&learner, LEARNER_VALUES, n) = number;
        learner.numbers[n] = (double)number;
    }
    for (int64_t n = 0; n < tokens * width; n++) {
        learner.x[n] = cosf((float)(n * 37 % 1009));
        learner.dy[n] = sinf((float)(n * 53 % 2003));
        learner.numbers[learner.begin[LEARNER_X] + n] = (double)learner.x[n];
    }
    return learner;
}

void free_learner(struct learner *learner)
{
    float *const blocks[] = {learner->blocks[LEARNER_VALUES],
                             learner->blocks[LEARNER_GRADIENTS],
                             learner->x,
                             learner->dy,
                             learner->y,
                             learner->dx,
                             learner->saved,
                             learner->workspace};
    for (size_t n = 0; n < sizeof blocks / sizeof blocks[0]; n++)
        free(blocks[n]);
    free(learner->numbers);
}

bool learner_forward(const struct compute *compute, struct learner *learner,
                     struct attn_error *error)
{
    return self_attention_learn(compute, &learner->layer, &learner->settings.batch,
                                &learner->settings.dropout, learner->x, learner->y, learner->saved,
                                error);
}

bool learner_backward(const struct compute *compute, struct learner *learner,
                      enum gradient_mode dx_mode, struct attn_error *error)
{
    return self_attention_backward(compute, &learner->layer, &learner->settings.batch,
                                   &learner->settings.dropout, learner->x, learner->saved,
                                   learner->dy, learner->dx, dx_mode, &learner->gradient,
                                   learner->workspace, error);
}

void learner_set_mode(struct learner *learner, enum gradient_mode mode)
{
    learner->gradient.query.mode = learner->gradient.key.mode = mode;
    learner->gradient.value.mode = learner->gradient.output.mode = mode;
}

void learner_step(const struct compute *compute, struct learner *learner)
{
    struct attn_error error;
    if (!learner_forward(compute, learner, &error) ||
        !learner_backward(compute, learner, GRADIENT_SET, &error))
        fail_msg("%s", error.message);
}

float *learner_gradients(const struct learner *learner)
{
    float *all = malloc((size_t)learner->number_count * sizeof *all);
    assert_non_null(all);
    for (int64_t n = 0; n < learner->number_count; n++)
        all[n] = n < learner->begin[LEARNER_X] ? *learner_number(learner, LEARNER_GRADIENTS, n)
                                               : learner->dx[n - learner->begin[LEARNER_X]];
    return all;
}
