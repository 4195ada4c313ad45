#include "bench_problem.h"

#include <string.h>

#include "base/memory.h"
#include "base/splitmix.h"

/* ±n/1024, 1 ≤ n ≤ 1023: a normal number in each type. */
static float random_float(uint64_t *state)
{
    uint64_t bits = attn_splitmix(*state += ATTN_SPLITMIX_STEP);
    float magnitude = (float)(1 + bits % 1023) / 1024;
    return bits >> 63 ? -magnitude : magnitude;
}

/* These numbers have an exponent in the range of f16 and at most 10 bits, of which bf16 drops some.
 */
static uint16_t half_of(float number, attn_type type)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (type == ATTN_BF16)
        return (uint16_t)(bits >> 16);
    uint32_t sign = bits >> 31, exponent = (bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t)(sign << 15 | exponent << 10 | (bits >> 13 & 0x3ff));
}

static int64_t element_count(const attn_tensor *tensor)
{
    return tensor->shape[0] * tensor->shape[1] * tensor->shape[2] * tensor->shape[3];
}

static int64_t tensor_bytes(const attn_tensor *tensor)
{
    return element_count(tensor) * bench_type_size(tensor->type);
}

static void fill_random(const attn_tensor *tensor, uint64_t seed)
{
    int64_t count = element_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        float number = random_float(&seed);
        switch (tensor->type) {
        case ATTN_F16:
        case ATTN_BF16:
            ((uint16_t *)tensor->data)[i] = half_of(number, tensor->type);
            break;
        case ATTN_I8:
            ((int8_t *)tensor->data)[i] = (int8_t)(number * 127);
            break;
        default:
            ((float *)tensor->data)[i] = number;
        }
    }
}

static void fill_scales(const attn_tensor *tensor)
{
    int64_t count = element_count(tensor);
    for (int64_t i = 0; i < count; i++)
        ((float *)tensor->data)[i] = 1.0f / 127;
}

void bench_problem_shape(struct bench_problem *problem, const struct bench_case *shape,
                         attn_precision precision)
{
    memset(problem, 0, sizeof *problem);
    problem->shape = shape;
    attn_type query_type = shape->type == ATTN_I8 ? ATTN_F32 : shape->type;
    problem->q = attn_tensor_packed(NULL, query_type, 1, shape->heads, shape->queries, shape->d_qk);
    problem->k =
        attn_tensor_packed(NULL, shape->type, 1, shape->key_heads, shape->keys, shape->d_qk);
    problem->v =
        attn_tensor_packed(NULL, shape->type, 1, shape->key_heads, shape->keys, shape->d_v);
    problem->o = attn_tensor_packed(NULL, query_type, 1, shape->heads, shape->queries, shape->d_v);
    problem->key_scales = problem->value_scales =
        attn_tensor_packed(NULL, ATTN_F32, 1, shape->key_heads, shape->keys, 1);
    problem->bias = attn_tensor_packed(NULL, ATTN_F32, 1, 1, shape->queries, shape->keys);
    problem->stats = attn_tensor_packed(NULL, ATTN_F32, 1, shape->heads, shape->queries, 2);
    problem->d_o = problem->o;
    problem->d_q = problem->q;
    problem->d_k = problem->k;
    problem->d_v = problem->v;
    attn_gradients_init(&problem->gradients);
    problem->gradients.q = &problem->d_q;
    problem->gradients.k = &problem->d_k;
    problem->gradients.v = &problem->d_v;

    problem->top_weights =
        attn_tensor_packed(NULL, ATTN_F32, 1, shape->heads, shape->queries, BENCH_TOP);
    problem->top_keys = problem->top_weights;
    problem->top_keys.type = ATTN_I32;
    problem->entropy = problem->maximum =
        attn_tensor_packed(NULL, ATTN_F32, 1, shape->heads, shape->queries, 1);
    problem->key_sums = attn_tensor_packed(NULL, ATTN_F32, 1, shape->heads, shape->keys, 1);
    attn_inspection_init(&problem->inspection);
    problem->inspection.top_weights = &problem->top_weights;
    problem->inspection.top_keys = &problem->top_keys;
    problem->inspection.entropy = &problem->entropy;
    problem->inspection.maximum = &problem->maximum;
    problem->inspection.key_sums = shape->key_sums ? &problem->key_sums : NULL;

    attn_params *params = &problem->params;
    attn_params_init(params);
    params->precision = precision;
    if (shape->type == ATTN_I8) {
        params->key_scales = &problem->key_scales;
        params->value_scales = &problem->value_scales;
    }
    switch (shape->kind) {
    case BENCH_WINDOW:
        params->window_left = BENCH_WINDOW_KEYS - 1;
        params->causal = 1;
        break;
    case BENCH_CAUSAL:
        params->causal = 1;
        break;
    case BENCH_VARLEN:
        for (int64_t s = 0; s <= BENCH_SEQUENCES; s++)
            problem->starts[s] = bench_case_start(shape, s);
        params->sequences = BENCH_SEQUENCES;
        params->query_starts = params->key_starts = problem->starts;
        break;
    case BENCH_ALIBI:
        attn_alibi_slopes(shape->heads, problem->slopes);
        params->alibi_slopes = problem->slopes;
        break;
    case BENCH_SOFT_CAP:
        params->soft_cap = 50;
        break;
    case BENCH_BIAS:
        params->bias = &problem->bias;
        break;
    case BENCH_DENSE:
        break;
    }
}

static bool goes_back(const struct bench_problem *problem)
{
    return problem->shape->operation == ATTN_OPERATION_BACKWARD;
}

static bool inspects(const struct bench_problem *problem)
{
    return problem->shape->operation == ATTN_OPERATION_FORWARD_INSPECT;
}

static bool allocate(void **memory, int64_t bytes)
{
    *memory =
        attn_allocator_default.allocate(attn_allocator_default.user, (size_t)bytes, ATTN_ALIGNMENT);
    return *memory != NULL;
}

static void release(void *memory)
{
    if (memory)
        attn_allocator_default.release(attn_allocator_default.user, memory);
}

static bool allocate_tensors(attn_tensor *const tensors[], size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (!allocate(&tensors[n]->data, tensor_bytes(tensors[n])))
            return false;
    return true;
}

static bool allocate_backward(struct bench_problem *problem)
{
    attn_tensor *const tensors[] = {&problem->d_o, &problem->d_q, &problem->d_k, &problem->d_v,
                                    &problem->stats};
    return allocate_tensors(tensors, sizeof tensors / sizeof tensors[0]);
}

static bool allocate_inspection(struct bench_problem *problem)
{
    attn_tensor *const tensors[] = {&problem->top_weights, &problem->top_keys, &problem->entropy,
                                    &problem->maximum, &problem->key_sums};
    return allocate_tensors(tensors, sizeof tensors / sizeof tensors[0]);
}

bool bench_problem_allocate(struct bench_problem *problem, int64_t copies, struct attn_error *error)
{
    const struct bench_case *shape = problem->shape;
    problem->copies = copies;
    problem->copy_bytes =
        (bench_case_key_value_bytes(shape) + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    void *keys_and_values = NULL;
    bool has_memory = allocate(&problem->q.data, tensor_bytes(&problem->q)) &&
                      allocate(&problem->o.data, tensor_bytes(&problem->o)) &&
                      (shape->kind != BENCH_BIAS ||
                       allocate(&problem->bias.data, tensor_bytes(&problem->bias))) &&
                      (!goes_back(problem) || allocate_backward(problem)) &&
                      (!inspects(problem) || allocate_inspection(problem)) &&
                      allocate(&keys_and_values, copies * problem->copy_bytes);
    problem->keys_and_values = keys_and_values;
    if (!has_memory)
        return attn_error_memory(error);
    bench_problem_turn(problem, 0);
    return true;
}

bool bench_problem_fill(attn_context *context, struct bench_problem *problem,
                        struct attn_error *error)
{
    const struct bench_case *shape = problem->shape;
    bench_problem_turn(problem, 0);
    fill_random(&problem->q, 1);
    fill_random(&problem->k, 2);
    fill_random(&problem->v, 3);
    if (shape->type == ATTN_I8) {
        fill_scales(&problem->key_scales);
        fill_scales(&problem->value_scales);
    }
    if (shape->kind == BENCH_BIAS)
        fill_random(&problem->bias, 4);
    for (int64_t copy = 1; copy < problem->copies; copy++)
        memcpy(problem->keys_and_values + copy * problem->copy_bytes, problem->keys_and_values,
               (size_t)problem->copy_bytes);
    if (!goes_back(problem))
        return true;
    fill_random(&problem->d_o, 5);
    return attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v,
                        &problem->o, &problem->stats) == ATTN_SUCCESS ||
           attn_error_set(error, "%s", attn_message(context));
}

void bench_problem_turn(struct bench_problem *problem, int64_t index)
{
    unsigned char *place = problem->keys_and_values + index % problem->copies * problem->copy_bytes;
    /* Scales first: they keep the alignment of what follows them, rows of 8-bit elements do not. */
    if (problem->shape->type == ATTN_I8) {
        problem->key_scales.data = place;
        place += tensor_bytes(&problem->key_scales);
        problem->value_scales.data = place;
        place += tensor_bytes(&problem->value_scales);
    }
    problem->k.data = place;
    problem->v.data = place + tensor_bytes(&problem->k);
}

attn_status bench_problem_call(attn_context *context, const struct bench_problem *problem)
{
    const attn_params *params = &problem->params;
    const attn_tensor *q = &problem->q, *k = &problem->k, *v = &problem->v, *o = &problem->o;
    switch (problem->shape->operation) {
    case ATTN_OPERATION_DECODE:
        return attn_decode(context, params, q, k, v, o, NULL);
    case ATTN_OPERATION_BACKWARD:
        return attn_backward(context, params, q, k, v, o, &problem->stats, &problem->d_o,
                             &problem->gradients);
    case ATTN_OPERATION_FORWARD_INSPECT:
        return attn_forward_inspect(context, params, q, k, v, o, NULL, &problem->inspection);
    default:
        return bench_problem_call_forward(context, problem);
    }
}

attn_status bench_problem_call_forward(attn_context *context, const struct bench_problem *problem)
{
    return attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v,
                        &problem->o, NULL);
}

void bench_problem_release(struct bench_problem *problem)
{
    release(problem->q.data);
    release(problem->o.data);
    release(problem->bias.data);
    release(problem->stats.data);
    release(problem->d_o.data);
    release(problem->d_q.data);
    release(problem->d_k.data);
    release(problem->d_v.data);
    release(problem->top_weights.data);
    release(problem->top_keys.data);
    release(problem->entropy.data);
    release(problem->maximum.data);
    release(problem->key_sums.data);
    release(problem->keys_and_values);
    memset(problem, 0, sizeof *problem);
}
