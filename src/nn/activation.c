#include "nn/activation.h"

#include <math.h>
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
    };
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
        if (strcmp(name, known[n].name) == 0) {
            *activation = known[n].activation;
            return true;
        }
    return false;
}

/* x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³), written as x / (1 + exp(−2u)). */
static float gelu_tanh(float x)
{
    double wide = (double)x;
    double u = 0.79788456080286536 * (wide + 0.044715 * wide * wide * wide);
    return (float)(wide / (1.0 + exp(-2.0 * u)));
}

/* NaN stays NaN. */
static float relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static void apply(float (*function)(float), int64_t rows, int64_t width, const float *bias,
                  float *x)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++)
            x[i * width + c] = function(x[i * width + c] + (bias ? bias[c] : 0.0f));
}

struct activation_work {
    const struct attn_kernels *kernels;
    enum activation activation;
    int64_t width;
    const float *bias;
    float *x;
};

static void activate_rows(const void *user, int64_t first, int64_t count)
{
    const struct activation_work *work = user;
    float *x = work->x + first * work->width;
    switch (work->activation) {
    case ACTIVATION_GELU_ERF:
        work->kernels->bias_gelu(x, work->bias, count, work->width);
        break;
    case ACTIVATION_GELU_TANH:
        apply(gelu_tanh, count, work->width, work->bias, x);
        break;
    case ACTIVATION_RELU:
        apply(relu, count, work->width, work->bias, x);
        break;
    }
}

void activation_forward(const struct compute *compute, enum activation activation, int64_t rows,
                        int64_t width, const float *bias, float *x)
{
    struct activation_work work = {compute->kernels, activation, width, bias, x};
    row_blocks_for(compute, rows, width, activate_rows, &work);
}
