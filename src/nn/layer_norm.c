#include "nn/layer_norm.h"

#include <stddef.h>

#include "kernel/kernel.h"
#include "nn/norm_backward.h"
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

bool layer_norm_backward(const struct compute *compute, const struct layer_norm *layer,
                         int64_t rows, const float *x, const float *dy, float *dx,
                         enum gradient_mode dx_mode, const struct layer_norm_gradient *gradient,
                         struct attn_error *error)
{
    const struct attn_norm_gradient pass = {
        .x = x,
        .dy = dy,
        .gain = layer->gain,
        .added = dx_mode == GRADIENT_ADD ? dx : NULL,
        .dx = dx,
        .d_gain = gradient->gain,
        .d_shift = gradient->shift,
    };
    return norm_backward(compute, compute->kernels->layer_norm_backward, &pass, layer->epsilon,
                         rows, layer->width, gradient->mode, error);
}
