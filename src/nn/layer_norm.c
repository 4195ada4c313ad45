#include "nn/layer_norm.h"

#include <stddef.h>

#include "kernel/kernel.h"
#include "nn/row_blocks.h"

struct norm_work {
    const struct attn_kernels *kernels;
    const struct layer_norm *layer;
    const float *x, *bias;
    float *y;
};

static void norm_rows(const void *user, int64_t first, int64_t count)
{
    const struct norm_work *work = user;
    const struct layer_norm *layer = work->layer;
    int64_t begin = first * layer->width;
    work->kernels->layer_norm(work->x + begin, work->bias, layer->gain, layer->shift,
                              layer->epsilon, count, layer->width, work->y + begin);
}

void layer_norm_forward(const struct compute *compute, const struct layer_norm *layer, int64_t rows,
                        const float *x, const float *bias, float *y)
{
    struct norm_work work = {compute->kernels, layer, x, bias, y};
    row_blocks_for(compute, rows, layer->width, norm_rows, &work);
}
