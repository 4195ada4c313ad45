#include "kernel/layers_scalar.h"

#include <math.h>

void attn_bias_gelu_scalar(float *x, const float *bias, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++) {
            float value = x[i * width + c] + (bias ? bias[c] : 0.0f);
            /* Φ(x) = erfc(−x/√2) / 2, which keeps its digits where Φ is small. */
            x[i * width + c] = 0.5f * value * erfcf(value * -0.70710678f);
        }
}

void attn_layer_norm_scalar(const float *x, const float *bias, const float *gain,
                            const float *shift, float epsilon, int64_t rows, int64_t width,
                            float *y)
{
    for (int64_t i = 0; i < rows; i++, x += width, y += width) {
        double sum = 0.0;
        for (int64_t c = 0; c < width; c++) {
            float value = x[c] + (bias ? bias[c] : 0.0f);
            y[c] = value;
            sum += (double)value;
        }
        double mean = sum / (double)width;

        double squares = 0.0;
        for (int64_t c = 0; c < width; c++) {
            double deviation = (double)y[c] - mean;
            squares += deviation * deviation;
        }
        double factor = 1.0 / sqrt(squares / (double)width + (double)epsilon);

        for (int64_t c = 0; c < width; c++)
            y[c] = (float)(((double)y[c] - mean) * factor) * gain[c] + shift[c];
    }
}
