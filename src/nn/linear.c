#include "nn/linear.h"

#include <cblas.h>
#include <string.h>

/* CBLAS counts in int. Widths come from checked settings and are far below its limit; rows may be
 * any number and go in blocks. */
enum { ROWS_AT_ONCE = 1 << 24 };

/* y = x·weightᵀ + beta·y. */
static void multiply(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                     float beta, float *y, int64_t y_stride)
{
    while (rows > 0) {
        int64_t count = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)layer->out,
                    (int)layer->in, 1.0f, x, (int)x_stride, layer->weight, (int)layer->in, beta, y,
                    (int)y_stride);
        rows -= count;
        x += count * x_stride;
        y += count * y_stride;
    }
}

void linear_product(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                    float *y, int64_t y_stride)
{
    multiply(layer, rows, x, x_stride, 0.0f, y, y_stride);
}

void linear_accumulate(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                       float *y, int64_t y_stride)
{
    multiply(layer, rows, x, x_stride, 1.0f, y, y_stride);
}

void linear_forward(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                    float *y, int64_t y_stride)
{
    if (!layer->bias) {
        linear_product(layer, rows, x, x_stride, y, y_stride);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + i * y_stride, layer->bias, (size_t)layer->out * sizeof *y);
    multiply(layer, rows, x, x_stride, 1.0f, y, y_stride);
}
