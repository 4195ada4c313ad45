#include "nn/activation.h"

#include <stddef.h>
#include <string.h>

#include "kernel/kernel.h"
#include "nn/row_blocks.h"

bool activation_from_name(const char *name, enum activation *activation)
{
    static const struct {
        const char *name;
        enum activation activation;
    } known[] = {
        {"gelu", ACTIVATION_GELU_ERF},
        {"gelu_python", ACTIVATION_GELU_ERF},
        {"gelu_new", ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
        {"gelu_fast", ACTIVATION_GELU_TANH},
        {"gelu_accurate", ACTIVATION_GELU_TANH},
        {"gelu_python_tanh", ACTIVATION_GELU_TANH},
        {"relu", ACTIVATION_RELU},
        {"silu", ACTIVATION_SILU},
        {"swish", ACTIVATION_SILU},
    };
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
        if (strcmp(name, known[n].name) == 0) {
            *activation = known[n].activation;
            return true;
        }
    return false;
}

static enum attn_activation kernel_activation(enum activation activation)
{
    switch (activation) {
    case ACTIVATION_GELU_ERF:
        return ATTN_ACTIVATION_GELU_ERF;
    case ACTIVATION_GELU_TANH:
        return ATTN_ACTIVATION_GELU_TANH;
    case ACTIVATION_RELU:
        return ATTN_ACTIVATION_RELU;
    case ACTIVATION_SILU:
        break;
    }
    return ATTN_ACTIVATION_SILU;
}

struct forward_work {
    const struct attn_kernels *kernels;
    enum attn_activation activation;
    int64_t width;
    const float *x, *bias;
    float *y;
};

static void activate_rows(const void *user, int64_t first, int64_t count)
{
    const struct forward_work *work = user;
    const int64_t begin = first * work->width;
    work->kernels->activate(work->activation, work->x + begin, work->bias, count, work->width,
                            work->y + begin);
}

void activation_forward(const struct compute *compute, enum activation activation, int64_t rows,
                        int64_t width, const float *bias, float *x)
{
    struct forward_work work = {compute->kernels, kernel_activation(activation), width, x, bias, x};
    row_blocks_for(compute, rows, width, activate_rows, &work);
}

void activation_apply(const struct compute *compute, enum activation activation, int64_t rows,
                      int64_t width, const float *x, float *y)
{
    struct forward_work work = {compute->kernels, kernel_activation(activation), width, x, NULL, y};
    row_blocks_for(compute, rows, width, activate_rows, &work);
}

struct backward_work {
    const struct attn_kernels *kernels;
    enum attn_activation activation;
    int64_t width;
    const float *x, *dy;
    float *dx;
};

static void activate_rows_backward(const void *user, int64_t first, int64_t count)
{
    const struct backward_work *work = user;
    const int64_t begin = first * work->width;
    work->kernels->activate_backward(work->activation, work->x + begin, work->dy + begin,
                                     count * work->width, work->dx + begin);
}

void activation_backward(const struct compute *compute, enum activation activation, int64_t rows,
                         int64_t width, const float *x, const float *dy, float *dx)
{
    struct backward_work work = {compute->kernels, kernel_activation(activation), width, x, dy, dx};
    row_blocks_for(compute, rows, width, activate_rows_backward, &work);
}

struct swiglu_work {
    const struct attn_kernels *kernels;
    int64_t width;
    const float *gate, *up, *dy;
    float *y, *d_gate, *d_up;
};

static void swiglu_rows(const void *user, int64_t first, int64_t count)
{
    const struct swiglu_work *work = user;
    const int64_t begin = first * work->width;
    work->kernels->swiglu(work->gate + begin, work->up + begin, count * work->width,
                          work->y + begin);
}

void swiglu_forward(const struct compute *compute, int64_t rows, int64_t width, const float *gate,
                    const float *up, float *y)
{
    struct swiglu_work work = {
        .kernels = compute->kernels, .width = width, .gate = gate, .up = up, .y = y};
    row_blocks_for(compute, rows, width, swiglu_rows, &work);
}

static void swiglu_rows_backward(const void *user, int64_t first, int64_t count)
{
    const struct swiglu_work *work = user;
    const int64_t begin = first * work->width;
    work->kernels->swiglu_backward(work->gate + begin, work->up + begin, work->dy + begin,
                                   count * work->width, work->d_gate + begin, work->d_up + begin);
}

void swiglu_backward(const struct compute *compute, int64_t rows, int64_t width, const float *gate,
                     const float *up, const float *dy, float *d_gate, float *d_up)
{
    struct swiglu_work work = {.kernels = compute->kernels,
                               .width = width,
                               .gate = gate,
                               .up = up,
                               .dy = dy,
                               .d_gate = d_gate,
                               .d_up = d_up};
    row_blocks_for(compute, rows, width, swiglu_rows_backward, &work);
}
