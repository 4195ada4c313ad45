/* Hundreds of random problems with options of every kind at once, against the definition. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/attention_problem.h"
#include "harness/isa.h"

enum { PROBLEMS = 400, MAX_HEADS = 9, MAX_BATCH = 3 };

/* What the pointers of a problem's params point to. */
struct arrays {
    int64_t key_lengths[MAX_BATCH];
    float slopes[MAX_HEADS], sinks[MAX_HEADS];
};

static int64_t random_length(struct random_source *source)
{
    static const int64_t edges[] = {15, 16, 17, 31, 33, 64, 95, 96, 97, 128, 193};
    if (random_integer(source, 0, 3) == 0)
        return edges[random_integer(source, 0, sizeof edges / sizeof edges[0] - 1)];
    return random_integer(source, 0, 24);
}

static bool one_in(struct random_source *source, int64_t n)
{
    return random_integer(source, 1, n) == 1;
}

static enum layout random_input_layout(struct random_source *source)
{
    return (enum layout)random_integer(source, 0, LAYOUT_INPUTS - 1);
}

/* A mask's shape: each axis full or 1. */
static void random_mask_shape(struct random_source *source, const struct attention_sizes *sizes,
                              int64_t shape[4])
{
    const int64_t full[4] = {sizes->batch, sizes->heads, sizes->queries, sizes->keys};
    for (int axis = 0; axis < 4; axis++)
        shape[axis] = one_in(source, 2) ? 1 : full[axis];
}

static void random_positions(struct random_source *source, attn_params *params, int64_t keys)
{
    params->alignment = (attn_alignment)random_integer(source, 0, 2);
    params->offset = random_integer(source, -10, keys + 10);
    params->causal = one_in(source, 2) ? (int)random_integer(source, -1, 1) : 0;
    if (one_in(source, 3))
        params->window_left = random_integer(source, -3, keys);
    if (one_in(source, 3))
        params->window_right = random_integer(source, -3, keys);
    if (one_in(source, 20))
        params->offset = one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
    if (one_in(source, 20))
        params->window_left = one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
    if (one_in(source, 20))
        params->window_right = one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
}

static void random_masks(struct random_source *source, struct attention_problem *problem,
                         const struct attention_sizes *sizes)
{
    int64_t shape[4];
    if (one_in(source, 3)) {
        random_mask_shape(source, sizes, shape);
        attention_add_keep(problem, shape, random_bits(source), random_integer(source, 1, 6));
        problem->keep = tensor_copy(&problem->keep, random_input_layout(source), GUARD_BEHIND);
    }
    if (one_in(source, 3)) {
        random_mask_shape(source, sizes, shape);
        attention_add_bias(problem, shape, random_bits(source));
        float *bias = problem->bias.data;
        size_t count = tensor_elements(&problem->bias);
        const float masks[] = {-INFINITY, -1e4f, -3.4028235e38f};
        float mask = masks[random_integer(source, 0, 2)];
        for (size_t i = 0; i < count; i++)
            if (one_in(source, 4))
                bias[i] = mask;
        problem->bias = tensor_copy(&problem->bias, random_input_layout(source), GUARD_BEHIND);
    }
}

static void random_arrays(struct random_source *source, struct attention_problem *problem,
                          const struct attention_sizes *sizes, struct arrays *arrays)
{
    attn_params *params = &problem->params;
    for (int64_t b = 0; b < sizes->batch; b++)
        arrays->key_lengths[b] = random_integer(source, 0, sizes->keys);
    random_floats(source, 0, 1, arrays->slopes, MAX_HEADS);
    random_floats(source, -4, 4, arrays->sinks, MAX_HEADS);
    for (int h = 0; h < MAX_HEADS; h++)
        if (one_in(source, 4))
            arrays->sinks[h] = -INFINITY;
    if (one_in(source, 3))
        params->key_lengths = arrays->key_lengths;
    /* Far from all keys a bias is so large that nothing else is left of a score. */
    bool far = params->alignment == ATTN_ALIGN_OFFSET && llabs(params->offset) > 1000;
    if (one_in(source, 3) && !far)
        params->alibi_slopes = arrays->slopes;
    if (one_in(source, 3))
        params->sinks = arrays->sinks;
    if (one_in(source, 4))
        params->soft_cap = random_float(source, 0.5f, 20);
    if (one_in(source, 4))
        params->scale = random_float(source, -1, 1);
}

static void random_problem(struct random_source *source, struct attention_problem *problem,
                           struct arrays *arrays)
{
    int64_t key_heads = random_integer(source, 1, 3);
    const struct attention_sizes sizes = {random_integer(source, 1, MAX_BATCH),
                                          key_heads * random_integer(source, 1, 3),
                                          key_heads,
                                          random_length(source),
                                          random_length(source),
                                          random_integer(source, 0, 20),
                                          random_integer(source, 0, 20)};
    attention_make(problem, &sizes, random_bits(source));
    problem->side = one_in(source, 2) ? GUARD_BEHIND : GUARD_BEFORE;
    problem->output_layout = (enum layout)random_integer(source, 0, LAYOUT_OUTPUTS - 1);
    problem->q = tensor_copy(&problem->q, random_input_layout(source), problem->side);
    problem->k = tensor_copy(&problem->k, random_input_layout(source), problem->side);
    problem->v = tensor_copy(&problem->v, random_input_layout(source), problem->side);
    random_positions(source, &problem->params, sizes.keys);
    random_masks(source, problem, &sizes);
    random_arrays(source, problem, &sizes, arrays);
}

static void everything_at_once(attn_isa isa)
{
    attn_context *context = isa_context(isa, 1);
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        test_context("seed %d", (int)seed);
        struct random_source source = {seed};
        struct attention_problem problem;
        struct arrays arrays;
        struct attention_result result;
        random_problem(&source, &problem, &arrays);
        attention_solve(context, &problem, &result);
        CHECK_RESULT(&problem, &result);
        guarded_release_all();
    }
    attn_context_destroy(context);
}

int main(void)
{
    isa_each("everything at once", everything_at_once);
    printf("# largest error: %.2f of %.0f allowed\n", attention_largest_error(),
           ATTENTION_ERROR_FACTOR);
    return test_finish();
}
