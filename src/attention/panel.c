#include "attention/panel.h"

#include <string.h>

struct attn_rows attn_side_by_side(const attn_tensor *tensor, int64_t batch, int64_t head,
                                   int64_t first, int64_t count, float *scratch)
{
    int64_t dim = tensor->shape[3];
    if (tensor->stride[3] == 1 || dim <= 1)
        return (struct attn_rows){attn_element(tensor, batch, head, first, 0), tensor->stride[2]};
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < dim; c++)
            scratch[i * dim + c] = *attn_element(tensor, batch, head, first + i, c);
    return (struct attn_rows){scratch, dim};
}

void attn_tile_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const float *queries, struct attn_rows keys,
                      float *s, float *m)
{
    float before[ATTN_MAX_LANES];
    size_t lanes_size = (size_t)kernels->lanes * sizeof(float);
    memcpy(before, m, lanes_size);
    kernels->scores(queries, problem->d_qk, keys.data, keys.stride, tile->keys, problem->scale, s,
                    m);
    if (attn_tile_needs_edit(problem, tile)) {
        attn_edit_scores(problem, tile, s);
        memcpy(m, before, lanes_size);
        kernels->raise_maximum(s, tile->keys, m);
    }
}
