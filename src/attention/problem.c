#include "attention/problem.h"

#include <inttypes.h>
#include <math.h>

#include "attention/overlap.h"
#include "attention/tensor_extent.h"

#define SHAPE_FORMAT "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]"
#define SHAPE_VALUES(tensor)                                                                       \
    (tensor)->shape[0], (tensor)->shape[1], (tensor)->shape[2], (tensor)->shape[3]

static const char *type_name(attn_type type)
{
    switch (type) {
    case ATTN_F32:
        return "f32";
    case ATTN_BOOL:
        return "bool";
    }
    return "unknown";
}

attn_status attn_check_tensor(const attn_tensor *tensor, const char *name, attn_type type,
                              struct attn_error *error)
{
    RETURN_IF(!tensor, error, ATTN_ERROR_ARGUMENT, "%s is NULL, expected a tensor", name);
    RETURN_IF(tensor->type != type, error, ATTN_ERROR_TYPE, "%s has type %s, expected %s", name,
              type_name(tensor->type), type_name(type));
    for (int axis = 0; axis < 4; axis++)
        RETURN_IF(tensor->shape[axis] < 0, error, ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected sizes of at least 0", name,
                  SHAPE_VALUES(tensor));
    RETURN_IF(!tensor->data && !attn_is_empty(tensor), error, ATTN_ERROR_ARGUMENT,
              "%s has no data, expected a pointer to its first element", name);
    RETURN_IF((uintptr_t)tensor->data % (uintptr_t)attn_type_size(type) != 0, error,
              ATTN_ERROR_ARGUMENT, "%s has data that is not aligned to its elements of %d bytes",
              name, (int)attn_type_size(type));
    RETURN_IF(!attn_extent_fits(tensor), error, ATTN_ERROR_SHAPE,
              "%s has a shape and strides that reach beyond the address space", name);
    return ATTN_SUCCESS;
}

attn_tensor attn_without_offsets(const attn_tensor *tensor)
{
    attn_tensor view = *tensor;
    for (int axis = 0; axis < 4 && attn_is_empty(tensor); axis++)
        view.stride[axis] = 0;
    return view;
}

attn_status attn_check_shape(const attn_tensor *tensor, const char *name, const int64_t expected[4],
                             struct attn_error *error)
{
    for (int axis = 0; axis < 4; axis++)
        RETURN_IF(tensor->shape[axis] != expected[axis], error, ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected [%" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64 "]",
                  name, SHAPE_VALUES(tensor), expected[0], expected[1], expected[2], expected[3]);
    return ATTN_SUCCESS;
}

/* The arrays of attn_params as one-axis tensors, so that outputs can be held against them. */
static attn_tensor float_array(const float *data, int64_t count)
{
    return attn_tensor_packed((void *)(uintptr_t)data, ATTN_F32, 1, 1, 1, count);
}

static attn_tensor length_array(const int64_t *data, int64_t count)
{
    return attn_tensor_packed((void *)(uintptr_t)data, ATTN_F32, 1, 1, 1, 2 * count);
}

attn_status attn_check_output(const struct attn_problem *problem, const attn_tensor *output,
                              const char *name, bool reads_v, struct attn_error *error)
{
    if (attn_is_empty(output))
        return ATTN_SUCCESS;
    RETURN_IF(attn_addresses_twice(output), error, ATTN_ERROR_OVERLAP,
              "%s has strides that address one element twice, expected one place for each element",
              name);
    attn_tensor slopes = float_array(problem->alibi_slopes, problem->heads);
    attn_tensor sinks = float_array(problem->sinks, problem->heads);
    attn_tensor lengths = length_array(problem->key_lengths, problem->batch);
    const struct {
        const char *name;
        const attn_tensor *tensor;
        bool used;
    } inputs[] = {
        {"q", &problem->q, true},
        {"k", &problem->k, true},
        {"v", &problem->v, reads_v},
        {"params.keep", &problem->keep, problem->has_keep},
        {"params.bias", &problem->bias, problem->has_bias},
        {"params.alibi_slopes", &slopes, problem->alibi_slopes != NULL},
        {"params.sinks", &sinks, problem->sinks != NULL},
        {"params.key_lengths", &lengths, problem->key_lengths != NULL},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        RETURN_IF(inputs[i].used && attn_overlap(output, inputs[i].tensor), error,
                  ATTN_ERROR_OVERLAP,
                  "%s and %s share memory, expected an output apart from all "
                  "inputs",
                  name, inputs[i].name);
    return ATTN_SUCCESS;
}

/* A tensor whose every axis is full or 1; axes of 1 are expanded by a stride of 0. */
static attn_status resolve_broadcast(attn_tensor *resolved, const attn_tensor *tensor,
                                     const char *name, attn_type type, const int64_t full[4],
                                     struct attn_error *error)
{
    attn_status status = attn_check_tensor(tensor, name, type, error);
    if (status)
        return status;
    *resolved = *tensor;
    for (int axis = 0; axis < 4; axis++) {
        RETURN_IF(tensor->shape[axis] != full[axis] && tensor->shape[axis] != 1, error,
                  ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected [%" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64 "] with any axis 1",
                  name, SHAPE_VALUES(tensor), full[0], full[1], full[2], full[3]);
        if (tensor->shape[axis] == 1)
            resolved->stride[axis] = 0;
    }
    return ATTN_SUCCESS;
}

static attn_status resolve_positions(struct attn_problem *problem, const attn_params *params,
                                     struct attn_error *error)
{
    switch (params->alignment) {
    case ATTN_ALIGN_TOP_LEFT:
        problem->offset = 0;
        break;
    case ATTN_ALIGN_BOTTOM_RIGHT:
        problem->offset = problem->keys - problem->queries;
        break;
    case ATTN_ALIGN_OFFSET:
        problem->offset = params->offset;
        break;
    default:
        RETURN_IF(true, error, ATTN_ERROR_ARGUMENT,
                  "params.alignment is %d, expected a value of attn_alignment",
                  (int)params->alignment);
    }
    RETURN_IF(problem->offset < -ATTN_POSITION_LIMIT || problem->offset > ATTN_POSITION_LIMIT,
              error, ATTN_ERROR_ARGUMENT,
              "params.offset is %" PRId64 ", expected at most ATTN_POSITION_LIMIT either way",
              problem->offset);

    const int64_t sides[2] = {params->window_left, params->window_right};
    const char *const names[2] = {"left", "right"};
    for (int side = 0; side < 2; side++)
        RETURN_IF(sides[side] != ATTN_WINDOW_OPEN &&
                      (sides[side] < -ATTN_POSITION_LIMIT || sides[side] > ATTN_POSITION_LIMIT),
                  error, ATTN_ERROR_ARGUMENT,
                  "params.window_%s is %" PRId64
                  ", expected ATTN_WINDOW_OPEN or at most ATTN_POSITION_LIMIT either way",
                  names[side], sides[side]);
    problem->reach_left = params->window_left;
    problem->reach_right = params->window_right;
    if (params->causal && problem->reach_right > 0)
        problem->reach_right = 0;
    return ATTN_SUCCESS;
}

static attn_status resolve_scores(struct attn_problem *problem, const attn_params *params,
                                  struct attn_error *error)
{
    bool default_scale = isnan(params->scale);
    RETURN_IF(default_scale && problem->d_qk == 0, error, ATTN_ERROR_ARGUMENT,
              "params.scale is not given and q has dim 0: 1/sqrt(0) is no scale, give one");
    problem->scale = default_scale ? (float)(1.0 / sqrt((double)problem->d_qk)) : params->scale;

    RETURN_IF(!(params->soft_cap >= 0.0f && params->soft_cap < INFINITY), error,
              ATTN_ERROR_ARGUMENT, "params.soft_cap is %g, expected a finite number of at least 0",
              (double)params->soft_cap);
    problem->soft_cap = params->soft_cap;
    problem->alibi_slopes = params->alibi_slopes;
    problem->sinks = params->sinks;

    const int64_t full[4] = {problem->batch, problem->heads, problem->queries, problem->keys};
    if (params->keep) {
        attn_status status =
            resolve_broadcast(&problem->keep, params->keep, "params.keep", ATTN_BOOL, full, error);
        if (status)
            return status;
        problem->has_keep = true;
    }
    if (params->bias) {
        attn_status status =
            resolve_broadcast(&problem->bias, params->bias, "params.bias", ATTN_F32, full, error);
        if (status)
            return status;
        problem->has_bias = true;
    }
    problem->changes_scores =
        problem->soft_cap > 0 || problem->has_bias || problem->alibi_slopes || problem->has_keep;

    problem->key_lengths = params->key_lengths;
    for (int64_t b = 0; params->key_lengths && b < problem->batch; b++)
        RETURN_IF(params->key_lengths[b] < 0 || params->key_lengths[b] > problem->keys, error,
                  ATTN_ERROR_ARGUMENT,
                  "params.key_lengths[%" PRId64 "] is %" PRId64 ", expected 0 to %" PRId64, b,
                  params->key_lengths[b], problem->keys);
    return ATTN_SUCCESS;
}

attn_status attn_problem_resolve(struct attn_problem *problem, const attn_params *params,
                                 const attn_tensor *q, const attn_tensor *k,
                                 struct attn_error *error)
{
    attn_params defaults;
    attn_params_init(&defaults);
    if (!params)
        params = &defaults;
    RETURN_IF(params->size != sizeof *params, error, ATTN_ERROR_ARGUMENT,
              "params.size is %zu, expected %zu: start from attn_params_init", params->size,
              sizeof *params);
    attn_status status = attn_check_tensor(q, "q", ATTN_F32, error);
    if (!status)
        status = attn_check_tensor(k, "k", ATTN_F32, error);
    if (status)
        return status;

    RETURN_IF(k->shape[0] != q->shape[0], error, ATTN_ERROR_SHAPE,
              "k has batch %" PRId64 ", expected %" PRId64 " as q", k->shape[0], q->shape[0]);
    RETURN_IF(k->shape[3] != q->shape[3], error, ATTN_ERROR_SHAPE,
              "k has dim %" PRId64 ", expected %" PRId64 " as q", k->shape[3], q->shape[3]);
    RETURN_IF(q->shape[1] > 0 && k->shape[1] == 0, error, ATTN_ERROR_SHAPE,
              "k has no heads but q has %" PRId64
              ": there are query heads but no key heads, expected a divisor of q's",
              q->shape[1]);
    RETURN_IF(q->shape[1] > 0 && q->shape[1] % k->shape[1] != 0, error, ATTN_ERROR_SHAPE,
              "q has %" PRId64 " heads, expected a multiple of k's %" PRId64
              ": query heads are not a multiple of key heads",
              q->shape[1], k->shape[1]);

    *problem = (struct attn_problem){
        .batch = q->shape[0],
        .heads = q->shape[1],
        .key_heads = k->shape[1],
        .queries = q->shape[2],
        .keys = k->shape[2],
        .d_qk = q->shape[3],
        .q = attn_without_offsets(q),
        .k = attn_without_offsets(k),
    };
    status = resolve_positions(problem, params, error);
    return status ? status : resolve_scores(problem, params, error);
}
