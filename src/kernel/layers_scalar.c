#include "kernel/layers_scalar.h"

#include <math.h>
#include <stddef.h>

/* σ of an activation x·σ(x). */
static double gate_of(enum attn_activation activation, double x)
{
    switch (activation) {
    case ATTN_ACTIVATION_GELU_ERF:
        /* Φ(x) = erfc(−x/√2) / 2, which keeps its digits where Φ is small. */
        return 0.5 * erfc(x * -0.70710678118654752);
    case ATTN_ACTIVATION_GELU_TANH:
        /* (1 + tanh u)/2 = 1 / (1 + exp(−2u)), u = √(2/π)·(x + 0.044715·x³) */
        return 1.0 / (1.0 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
    case ATTN_ACTIVATION_RELU:
        return x > 0.0 ? 1.0 : 0.0;
    case ATTN_ACTIVATION_SILU:
        return 1.0 / (1.0 + exp(-x));
    }
    return 0.0;
}

/* σ' */
static double slope_of(enum attn_activation activation, double x)
{
    double gate = gate_of(activation, x);
    switch (activation) {
    case ATTN_ACTIVATION_GELU_ERF:
        return 0.39894228040143268 * exp(-0.5 * x * x); /* the normal density */
    case ATTN_ACTIVATION_GELU_TANH:
        return gate * (1.0 - gate) * 1.5957691216057308 * (1.0 + 3.0 * 0.044715 * x * x);
    case ATTN_ACTIVATION_RELU:
        return 0.0;
    case ATTN_ACTIVATION_SILU:
        return gate * (1.0 - gate);
    }
    return 0.0;
}

/* Where σ is 0 or 1 it decides, also for an infinite x. NaN stays. */
static float activated(enum attn_activation activation, float x)
{
    if (isnan(x))
        return x;
    double gate = gate_of(activation, (double)x);
    return gate == 0.0 ? 0.0f : (float)((double)x * gate);
}

static float derivative(enum attn_activation activation, float x)
{
    if (isnan(x))
        return x;
    double gate = gate_of(activation, (double)x);
    if (gate == 0.0 || gate == 1.0)
        return (float)gate;
    return (float)(gate + (double)x * slope_of(activation, (double)x));
}

void attn_activate_scalar(enum attn_activation activation, const float *x, const float *bias,
                          int64_t rows, int64_t width, float *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++)
            y[i * width + c] = activated(activation, x[i * width + c] + (bias ? bias[c] : 0.0f));
}

void attn_activate_backward_scalar(enum attn_activation activation, const float *x, const float *dy,
                                   int64_t count, float *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = dy[i] * derivative(activation, x[i]);
}

void attn_swiglu_scalar(const float *gate, const float *up, int64_t count, float *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = activated(ATTN_ACTIVATION_SILU, gate[i]) * up[i];
}

void attn_swiglu_backward_scalar(const float *gate, const float *up, const float *dy, int64_t count,
                                 float *d_gate, float *d_up)
{
    for (int64_t i = 0; i < count; i++) {
        float opened = activated(ATTN_ACTIVATION_SILU, gate[i]);
        float slope = derivative(ATTN_ACTIVATION_SILU, gate[i]);
        float dy_gate = dy[i] * up[i], dy_up = dy[i];
        d_gate[i] = dy_gate * slope;
        d_up[i] = dy_up * opened;
    }
}

/* mean(x) of a row, and 1/√(mean((x − center)²) + ε). */
static double mean_of(const float *x, int64_t width)
{
    double sum = 0.0;
    for (int64_t c = 0; c < width; c++)
        sum += (double)x[c];
    return sum / (double)width;
}

static double inverse_deviation(const float *x, int64_t width, double center, float epsilon)
{
    double squares = 0.0;
    for (int64_t c = 0; c < width; c++) {
        double deviation = (double)x[c] - center;
        squares += deviation * deviation;
    }
    return 1.0 / sqrt(squares / (double)width + (double)epsilon);
}

void attn_layer_norm_scalar(const float *x, const float *bias, const float *gain,
                            const float *shift, float epsilon, int64_t rows, int64_t width,
                            float *y)
{
    for (int64_t i = 0; i < rows; i++, x += width, y += width) {
        for (int64_t c = 0; c < width; c++)
            y[c] = x[c] + (bias ? bias[c] : 0.0f);
        double mean = mean_of(y, width);
        double factor = inverse_deviation(y, width, mean, epsilon);
        for (int64_t c = 0; c < width; c++)
            y[c] = (float)(((double)y[c] - mean) * factor) * gain[c] + shift[c];
    }
}

void attn_rms_norm_scalar(const float *x, const float *gain, float epsilon, int64_t rows,
                          int64_t width, float *y)
{
    for (int64_t i = 0; i < rows; i++, x += width, y += width) {
        double r = inverse_deviation(x, width, 0.0, epsilon);
        for (int64_t c = 0; c < width; c++)
            y[c] = (float)((double)x[c] * r) * gain[c];
    }
}

/* One row from `begin` on, x̂ = (x − mean)·r: dx = added + r·(g − part·mean(g) − x̂·mean(g∘x̂)). */
static void norm_row_backward(const struct attn_norm_gradient *gradient, int64_t begin,
                              int64_t width, double mean, double r, double part)
{
    const float *x = gradient->x + begin, *dy = gradient->dy + begin;
    double sum_g = 0.0, sum_gx = 0.0;
    for (int64_t c = 0; c < width; c++) {
        double g = (double)dy[c] * (double)gradient->gain[c];
        sum_g += g;
        sum_gx += g * ((double)x[c] - mean) * r;
    }
    const double mean_g = part * sum_g / (double)width, mean_gx = sum_gx / (double)width;
    for (int64_t c = 0; c < width; c++) {
        double normal = ((double)x[c] - mean) * r, dy_c = (double)dy[c];
        double dx = r * (dy_c * (double)gradient->gain[c] - mean_g - normal * mean_gx);
        float added = gradient->added ? gradient->added[begin + c] : 0.0f;
        gradient->dx[begin + c] = (float)((double)added + dx);
        if (gradient->d_gain)
            gradient->d_gain[c] += (float)(dy_c * normal);
        if (gradient->d_shift)
            gradient->d_shift[c] += (float)dy_c;
    }
}

void attn_layer_norm_backward_scalar(const struct attn_norm_gradient *gradient, float epsilon,
                                     int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++) {
        double mean = mean_of(gradient->x + i * width, width);
        double r = inverse_deviation(gradient->x + i * width, width, mean, epsilon);
        norm_row_backward(gradient, i * width, width, mean, r, 1.0);
    }
}

void attn_rms_norm_backward_scalar(const struct attn_norm_gradient *gradient, float epsilon,
                                   int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++) {
        double r = inverse_deviation(gradient->x + i * width, width, 0.0, epsilon);
        norm_row_backward(gradient, i * width, width, 0.0, r, 0.0);
    }
}

double attn_cross_entropy_scalar(const float *logits, int64_t classes, int64_t label, float scale,
                                 float *gradient)
{
    float maximum = -INFINITY;
    for (int64_t c = 0; c < classes; c++)
        if (logits[c] > maximum)
            maximum = logits[c];
    double sum = 0.0;
    for (int64_t c = 0; c < classes; c++)
        sum += exp((double)(logits[c] - maximum));
    const double loss = (double)maximum - (double)logits[label] + log(sum);

    if (gradient) {
        for (int64_t c = 0; c < classes; c++)
            gradient[c] = scale * (float)(exp((double)(logits[c] - maximum)) / sum);
        gradient[label] -= scale;
    }
    return loss;
}
