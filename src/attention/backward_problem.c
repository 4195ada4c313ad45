#include "attention/backward_problem.h"

#include <string.h>

#include "attention/overlap.h"
#include "attention/tensor_check.h"
#include "attention/tensor_extent.h"

attn_status attn_backward_check(const struct attn_problem *problem, struct attn_error *error)
{
    RETURN_IF(problem->k.type == ATTN_I8 || problem->v.type == ATTN_I8, error,
              ATTN_ERROR_UNSUPPORTED,
              "%s has type i8, expected f32, f16 or bf16: attn_backward does not take i8",
              problem->k.type == ATTN_I8 ? "k" : "v");
    RETURN_IF(problem->block_table, error, ATTN_ERROR_UNSUPPORTED,
              "params.block_table is given, expected keys and values without pages: attn_backward "
              "does not take pages");
    RETURN_IF(problem->change_scores && !problem->change_gradients, error, ATTN_ERROR_UNSUPPORTED,
              "params.change_gradients is NULL, expected the derivative of params.change_scores");
    return ATTN_SUCCESS;
}

/* stats and d_o; o has been checked. All of them are inputs. */
static attn_status resolve_inputs(struct attn_problem *problem,
                                  struct attn_backward_problem *backward, const attn_tensor *o,
                                  const attn_tensor *stats, const attn_tensor *d_o,
                                  struct attn_error *error)
{
    RETURN_IF(!stats, error, ATTN_ERROR_ARGUMENT,
              "stats is NULL, expected what attn_forward has written");
    attn_status status = attn_problem_check_output_form(problem, o, stats, error);
    bool doubles = problem->q.type == ATTN_F64;
    if (!status)
        status = attn_check_tensor(
            d_o, "d_o", doubles ? (unsigned)ATTN_TYPES_F64 : ATTN_TYPES_F32 | 1u << problem->q.type,
            error);
    if (!status)
        status = attn_check_shape(d_o, "d_o", o->shape, error);
    if (status)
        return status;
    problem->o = attn_without_offsets(o);
    problem->stats = attn_without_offsets(stats);
    backward->d_o = attn_without_offsets(d_o);
    return ATTN_SUCCESS;
}

/* One gradient: of this shape, in F32 or (F64: only) `type`, apart from all inputs. */
static attn_status resolve_output(const struct attn_problem *problem,
                                  const struct attn_backward_problem *backward,
                                  const attn_tensor *given, const char *name,
                                  const int64_t shape[4], attn_type type, attn_tensor *resolved,
                                  struct attn_error *error)
{
    unsigned types =
        type == ATTN_F64 ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_F32 | 1u << type;
    attn_status status = attn_check_tensor(given, name, types, error);
    if (!status)
        status = attn_check_shape(given, name, shape, error);
    if (!status)
        status = attn_check_output(problem, given, name, true, error);
    if (status)
        return status;
    const struct {
        const char *name;
        const attn_tensor *tensor;
    } inputs[] = {{"o", &problem->o}, {"stats", &problem->stats}, {"d_o", &backward->d_o}};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        RETURN_IF(attn_overlap(given, inputs[i].tensor), error, ATTN_ERROR_OVERLAP,
                  "%s and %s share memory, expected an output apart from all inputs", name,
                  inputs[i].name);
    *resolved = attn_without_offsets(given);
    return ATTN_SUCCESS;
}

static attn_status resolve_gradients(const struct attn_problem *problem,
                                     struct attn_backward_problem *backward,
                                     const attn_gradients *wanted, struct attn_error *error)
{
    RETURN_IF(wanted->bias && !problem->has_bias, error, ATTN_ERROR_ARGUMENT,
              "gradients.bias is given but params.bias is NULL, expected both or only the latter");
    RETURN_IF(
        wanted->sinks && !problem->sinks, error, ATTN_ERROR_ARGUMENT,
        "gradients.sinks is given but params.sinks is NULL, expected both or only the latter");
    const attn_type sums = problem->q.type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    const int64_t sinks_shape[4] = {1, problem->heads, 1, 1};
    const struct {
        const attn_tensor *given;
        const char *name;
        const int64_t *shape;
        attn_type type;
        attn_tensor *resolved;
        bool *wants;
    } outputs[] = {
        {wanted->q, "gradients.q", problem->q.shape, problem->q.type, &backward->d_q,
         &backward->wants_q},
        {wanted->k, "gradients.k", problem->k.shape, problem->k.type, &backward->d_k,
         &backward->wants_k},
        {wanted->v, "gradients.v", problem->v.shape, problem->v.type, &backward->d_v,
         &backward->wants_v},
        {wanted->bias, "gradients.bias", problem->bias.shape, sums, &backward->d_bias,
         &backward->wants_bias},
        {wanted->sinks, "gradients.sinks", sinks_shape, sums, &backward->d_sinks,
         &backward->wants_sinks},
    };
    const size_t count = sizeof outputs / sizeof outputs[0];
    for (size_t n = 0; n < count; n++) {
        if (!outputs[n].given)
            continue;
        attn_status status =
            resolve_output(problem, backward, outputs[n].given, outputs[n].name, outputs[n].shape,
                           outputs[n].type, outputs[n].resolved, error);
        if (status)
            return status;
        for (size_t before = 0; before < n; before++)
            RETURN_IF(*outputs[before].wants &&
                          attn_overlap(outputs[n].resolved, outputs[before].resolved),
                      error, ATTN_ERROR_OVERLAP,
                      "%s and %s share memory, expected outputs apart from each other",
                      outputs[n].name, outputs[before].name);
        *outputs[n].wants = true;
    }
    for (int axis = 0; axis < 4; axis++)
        if (backward->wants_bias && backward->d_bias.shape[axis] == 1)
            backward->d_bias.stride[axis] = 0;
    return ATTN_SUCCESS;
}

attn_status attn_backward_resolve(struct attn_problem *problem,
                                  struct attn_backward_problem *backward,
                                  struct attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                  const attn_tensor *o, const attn_tensor *stats,
                                  const attn_tensor *d_o, const attn_gradients *gradients)
{
    struct attn_error *error = &context->error;
    RETURN_IF(!gradients, error, ATTN_ERROR_ARGUMENT,
              "gradients is NULL, expected the tensors that are wanted");
    RETURN_IF(gradients->size != sizeof *gradients, error, ATTN_ERROR_ARGUMENT,
              "gradients.size is %zu, expected %zu: start from attn_gradients_init",
              gradients->size, sizeof *gradients);
    *backward = (struct attn_backward_problem){0};
    attn_status status = attn_problem_resolve(problem, context, params, q, k);
    if (!status)
        status = attn_problem_resolve_values(problem, v, error);
    if (!status)
        status = attn_backward_check(problem, error);
    if (!status)
        status = resolve_inputs(problem, backward, o, stats, d_o, error);
    return status ? status : resolve_gradients(problem, backward, gradients, error);
}

static void clear(const attn_tensor *tensor)
{
    const int64_t size = attn_type_size(tensor->type);
    for (int64_t b = 0; b < tensor->shape[0]; b++)
        for (int64_t h = 0; h < tensor->shape[1]; h++)
            for (int64_t i = 0; i < tensor->shape[2]; i++)
                for (int64_t c = 0; c < tensor->shape[3]; c++)
                    memset(attn_address(tensor, size, b, h, i, c), 0, (size_t)size);
}

void attn_backward_clear(const struct attn_backward_problem *backward)
{
    /* A gradient that is not wanted has no element. */
    clear(&backward->d_q);
    clear(&backward->d_k);
    clear(&backward->d_v);
    clear(&backward->d_bias);
    clear(&backward->d_sinks);
}
