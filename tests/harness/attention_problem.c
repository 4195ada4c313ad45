#include "harness/attention_problem.h"

void attention_make(struct attention_problem *problem, const struct attention_sizes *sizes,
                    uint64_t seed)
{
    struct random_source source = {seed};
    *problem = (struct attention_problem){.output_layout = LAYOUT_PACKED, .side = GUARD_BEHIND};
    attn_params_init(&problem->params);
    problem->q = tensor_allocate(ATTN_F32, sizes->batch, sizes->heads, sizes->queries, sizes->d_qk,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    problem->k = tensor_allocate(ATTN_F32, sizes->batch, sizes->key_heads, sizes->keys, sizes->d_qk,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    problem->v = tensor_allocate(ATTN_F32, sizes->batch, sizes->key_heads, sizes->keys, sizes->d_v,
                                 LAYOUT_PACKED, GUARD_BEHIND);
    tensor_fill_random(&problem->q, &source, -2, 2);
    tensor_fill_random(&problem->k, &source, -2, 2);
    tensor_fill_random(&problem->v, &source, -1, 1);
    if (sizes->d_qk == 0)
        problem->params.scale = 1;
}

void attention_add_keep(struct attention_problem *problem, const int64_t shape[4], uint64_t seed,
                        int64_t one_in)
{
    struct random_source source = {seed};
    problem->keep = tensor_allocate(ATTN_BOOL, shape[0], shape[1], shape[2], shape[3],
                                    LAYOUT_PACKED, GUARD_BEHIND);
    unsigned char *keep = problem->keep.data;
    for (size_t i = 0; i < tensor_elements(&problem->keep); i++)
        keep[i] = (unsigned char)(random_integer(&source, 1, one_in) == 1
                                      ? 0
                                      : random_integer(&source, 1, 255));
    problem->params.keep = &problem->keep;
}

void attention_add_bias(struct attention_problem *problem, const int64_t shape[4], uint64_t seed)
{
    struct random_source source = {seed};
    problem->bias = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], shape[3], LAYOUT_PACKED,
                                    GUARD_BEHIND);
    tensor_fill_random(&problem->bias, &source, -2, 2);
    problem->params.bias = &problem->bias;
}

void attention_copy(const struct attention_problem *problem, struct attention_problem *copy)
{
    *copy = *problem;
    attn_params *params = &copy->params;
    params->keep = params->keep ? &copy->keep : NULL;
    params->bias = params->bias ? &copy->bias : NULL;
    params->key_scales = params->key_scales ? &copy->key_scales : NULL;
    params->value_scales = params->value_scales ? &copy->value_scales : NULL;
}
