#include "random_problem.h"

#include <math.h>
#include <stdlib.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"

static int64_t random_length(struct random_source *source)
{
    static const int64_t edges[] = {15, 16, 17, 31, 33, 64, 95, 96, 97, 128, 193};
    if (random_integer(source, 0, 3) == 0)
        return edges[random_integer(source, 0, sizeof edges / sizeof edges[0] - 1)];
    return random_integer(source, 0, 24);
}

bool random_one_in(struct random_source *source, int64_t n)
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
        shape[axis] = random_one_in(source, 2) ? 1 : full[axis];
}

static void random_positions(struct random_source *source, attn_params *params, int64_t keys)
{
    params->alignment = (attn_alignment)random_integer(source, 0, 2);
    params->offset = random_integer(source, -10, keys + 10);
    params->causal = random_one_in(source, 2) ? (int)random_integer(source, -1, 1) : 0;
    if (random_one_in(source, 3))
        params->window_left = random_integer(source, -3, keys);
    if (random_one_in(source, 3))
        params->window_right = random_integer(source, -3, keys);
    if (random_one_in(source, 20))
        params->offset = random_one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
    if (random_one_in(source, 20))
        params->window_left = random_one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
    if (random_one_in(source, 20))
        params->window_right =
            random_one_in(source, 2) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
}

static void random_masks(struct random_source *source, struct attention_problem *problem,
                         const struct attention_sizes *sizes)
{
    int64_t shape[4];
    if (random_one_in(source, 3)) {
        random_mask_shape(source, sizes, shape);
        attention_add_keep(problem, shape, random_bits(source), random_integer(source, 1, 6));
        problem->keep = tensor_copy(&problem->keep, random_input_layout(source), GUARD_BEHIND);
    }
    if (random_one_in(source, 3)) {
        random_mask_shape(source, sizes, shape);
        attention_add_bias(problem, shape, random_bits(source));
        float *bias = problem->bias.data;
        size_t count = tensor_elements(&problem->bias);
        const float masks[] = {-INFINITY, -1e4f, -3.4028235e38f};
        float mask = masks[random_integer(source, 0, 2)];
        for (size_t i = 0; i < count; i++)
            if (random_one_in(source, 4))
                bias[i] = mask;
        problem->bias = tensor_copy(&problem->bias, random_input_layout(source), GUARD_BEHIND);
    }
}

static void set_arrays(struct random_source *source, struct attention_problem *problem,
                       struct random_arrays *arrays)
{
    attn_params *params = &problem->params;
    random_floats(source, 0, 1, arrays->slopes, RANDOM_MAX_HEADS);
    random_floats(source, -4, 4, arrays->sinks, RANDOM_MAX_HEADS);
    for (int h = 0; h < RANDOM_MAX_HEADS; h++)
        if (random_one_in(source, 4))
            arrays->sinks[h] = -INFINITY;
    /* Far from all keys a bias is so large that nothing else is left of a score. */
    bool far = params->alignment == ATTN_ALIGN_OFFSET && llabs(params->offset) > 1000;
    if (random_one_in(source, 3) && !far)
        params->alibi_slopes = arrays->slopes;
    if (random_one_in(source, 3))
        params->sinks = arrays->sinks;
    if (random_one_in(source, 4))
        params->soft_cap = random_float(source, 0.5f, 20);
    if (random_one_in(source, 4))
        params->scale = random_float(source, -1, 1);
}

/* Cuts a length into parts of any size, not all of it. */
static void random_parts(struct random_source *source, int64_t length, int64_t count,
                         int64_t *parts)
{
    for (int64_t n = 0; n < count; n++) {
        parts[n] = random_integer(source, 0, 2 * length / count);
        parts[n] = parts[n] < length ? parts[n] : length;
        length -= parts[n];
    }
}

/* Packed sequences, and the lengths of each sequence. */
static void random_sequences(struct random_source *source, struct attention_problem *problem,
                             const struct attention_sizes *sizes, struct random_arrays *arrays)
{
    attn_params *params = &problem->params;
    if (sizes->batch == 1 && random_one_in(source, 2)) {
        int64_t queries[RANDOM_MAX_SEQUENCES], keys[RANDOM_MAX_SEQUENCES];
        int64_t count = random_integer(source, 1, RANDOM_MAX_SEQUENCES);
        random_parts(source, sizes->queries, count, queries);
        random_parts(source, sizes->keys, count, keys);
        attention_add_sequences(problem, count, queries, keys);
    }
    for (int64_t s = 0; s < reference_sequences(params, sizes->batch); s++) {
        struct reference_sequence sequence =
            reference_sequence_at(params, s, sizes->queries, sizes->keys);
        arrays->key_lengths[s] = random_integer(source, 0, sequence.keys);
        arrays->prefix_lengths[s] = random_integer(source, 0, sequence.keys + 9);
    }
    if (random_one_in(source, 3))
        params->key_lengths = arrays->key_lengths;
    if (random_one_in(source, 4))
        params->prefix_lengths = arrays->prefix_lengths;
    if (random_one_in(source, 4))
        attention_add_documents(problem, random_integer(source, 1, 60), random_bits(source));
}

static bool is_beside_band(const struct random_arrays *arrays, const attn_score_tile *tile,
                           int64_t query, int64_t key)
{
    return llabs(key - query) > arrays->reach ||
           (query + 2 * key + tile->head + tile->sequence) % 7 == 0;
}

/* Scores as a function of themselves and their place; nothing beside a diagonal band. */
static void change_scores(void *user, const attn_score_tile *tile)
{
    const struct random_arrays *arrays = user;
    for (int64_t i = 0; i < tile->queries; i++) {
        for (int64_t j = 0; j < tile->keys; j++) {
            int64_t query = tile->query + i, key = tile->key + j;
            float *score = tile->scores + i * tile->query_stride + j * tile->key_stride;
            if (is_beside_band(arrays, tile, query, key))
                *score = -INFINITY;
            else if ((query + key) % 3 == 0)
                *score = 0.5f * *score + (float)((query * 7 + key * 3) % 5 - 2);
        }
    }
}

/* What it makes of the gradient of an excluded score is lost. */
static void change_gradients(void *user, const attn_score_tile *tile, float *gradients)
{
    const struct random_arrays *arrays = user;
    for (int64_t i = 0; i < tile->queries; i++) {
        for (int64_t j = 0; j < tile->keys; j++) {
            int64_t query = tile->query + i, key = tile->key + j;
            float *gradient = gradients + i * tile->query_stride + j * tile->key_stride;
            if (is_beside_band(arrays, tile, query, key))
                *gradient = 1;
            else if ((query + key) % 3 == 0)
                *gradient *= 0.5f;
        }
    }
}

static void key_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                      int64_t *begin, int64_t *end)
{
    (void)sequence, (void)head;
    const struct random_arrays *arrays = user;
    int64_t first = query - arrays->reach, last = query + queries - 1 + arrays->reach;
    *begin = first > *begin ? first : *begin;
    *end = last + 1 < *end ? last + 1 : *end;
}

static void random_callbacks(struct random_source *source, attn_params *params,
                             struct random_arrays *arrays)
{
    if (!random_one_in(source, 4))
        return;
    arrays->reach = random_integer(source, 0, 80);
    params->callback_user = arrays;
    params->change_scores = change_scores;
    params->change_gradients = change_gradients;
    if (random_one_in(source, 2))
        params->key_range = key_range;
}

static void random_dropout(struct random_source *source, attn_params *params)
{
    if (!random_one_in(source, 5))
        return;
    params->dropout = random_one_in(source, 8) ? 1 : random_float(source, 0, 0.9f);
    params->dropout_seed = random_bits(source);
    params->dropout_batch = random_integer(source, 0, INT64_C(1) << 33);
    params->dropout_query = random_integer(source, 0, INT64_C(1) << 33);
}

static attn_type random_type(struct random_source *source, bool of_rows)
{
    static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_I8};
    return types[random_integer(source, 0, of_rows ? 3 : 2)];
}

static void random_types(struct random_source *source, struct attention_problem *problem)
{
    attn_params *params = &problem->params;
    if (random_one_in(source, 10)) {
        attention_store(problem, ATTN_F64, ATTN_F64, ATTN_F64);
    } else if (random_one_in(source, 5)) {
        params->precision = ATTN_PRECISION_BF16;
        attention_store(problem, ATTN_BF16, ATTN_BF16, ATTN_BF16);
    } else if (random_one_in(source, 2)) {
        attn_type q = random_type(source, false);
        attention_store(problem, q, random_type(source, true), random_type(source, true));
        if (random_one_in(source, 2))
            problem->output_type = q;
        if (params->bias && random_one_in(source, 2))
            attention_store_bias(problem, random_type(source, false));
    }
}

static void random_layouts(struct random_source *source, struct attention_problem *problem)
{
    attn_tensor *const tensors[] = {&problem->q, &problem->k, &problem->v};
    for (size_t n = 0; n < sizeof tensors / sizeof tensors[0]; n++)
        *tensors[n] = tensor_copy(tensors[n], random_input_layout(source), problem->side);
    if (problem->params.key_scales && random_one_in(source, 2))
        problem->key_scales =
            tensor_copy(&problem->key_scales, random_input_layout(source), problem->side);
}

void random_problem(struct random_source *source, struct attention_problem *problem,
                    struct random_arrays *arrays)
{
    int64_t key_heads = random_integer(source, 1, 3);
    const struct attention_sizes sizes = {random_integer(source, 1, RANDOM_MAX_BATCH),
                                          key_heads * random_integer(source, 1, 3),
                                          key_heads,
                                          random_length(source),
                                          random_length(source),
                                          random_integer(source, 0, 20),
                                          random_integer(source, 0, 20)};
    attention_make(problem, &sizes, random_bits(source));
    problem->side = random_one_in(source, 2) ? GUARD_BEHIND : GUARD_BEFORE;
    problem->output_layout = (enum layout)random_integer(source, 0, LAYOUT_OUTPUTS - 1);
    random_positions(source, &problem->params, sizes.keys);
    random_masks(source, problem, &sizes);
    set_arrays(source, problem, arrays);
    random_sequences(source, problem, &sizes, arrays);
    random_callbacks(source, &problem->params, arrays);
    random_dropout(source, &problem->params);
    random_types(source, problem);
    random_layouts(source, problem);
}
