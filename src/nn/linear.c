#include "nn/linear.h"

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

/* CBLAS counts in int. Widths come from checked settings and are far below its limit; rows may be
 * any number and go in blocks. */
enum { ROWS_AT_ONCE = 1 << 24 };

static int64_t block_of(int64_t rows)
{
    return rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
}

static int weight_stride(const struct linear *layer)
{
    if (layer->weight_stride)
        return (int)layer->weight_stride;
    return (int)(layer->layout == LINEAR_OUT_IN ? layer->in : layer->out);
}

/* y = x·weightᵀ + beta·y, weight as a matrix [out][in]. */
static void multiply(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                     float beta, float *y, int64_t y_stride)
{
    const CBLAS_TRANSPOSE turn = layer->layout == LINEAR_OUT_IN ? CblasTrans : CblasNoTrans;
    while (rows > 0) {
        int64_t count = block_of(rows);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, turn, (int)count, (int)layer->out, (int)layer->in,
                    1.0f, x, (int)x_stride, layer->weight, weight_stride(layer), beta, y,
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

/* dx = dy·weight + beta·dx */
static void input_gradient(const struct linear *layer, int64_t rows, const float *dy,
                           int64_t dy_stride, float beta, float *dx, int64_t dx_stride)
{
    const CBLAS_TRANSPOSE turn = layer->layout == LINEAR_OUT_IN ? CblasNoTrans : CblasTrans;
    while (rows > 0) {
        int64_t count = block_of(rows);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, turn, (int)count, (int)layer->in, (int)layer->out,
                    1.0f, dy, (int)dy_stride, layer->weight, weight_stride(layer), beta, dx,
                    (int)dx_stride);
        rows -= count;
        dy += count * dy_stride;
        dx += count * dx_stride;
    }
}

/* a[rows][m]ᵀ·b[rows][n] + beta·c, into c[m][n]. */
static void transposed_product(int64_t rows, const float *a, int64_t a_stride, int64_t m,
                               const float *b, int64_t b_stride, int64_t n, float beta, float *c,
                               int c_stride)
{
    while (rows > 0) {
        int64_t count = block_of(rows);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n, (int)count, 1.0f, a,
                    (int)a_stride, b, (int)b_stride, beta, c, c_stride);
        rows -= count;
        a += count * a_stride;
        b += count * b_stride;
        beta = 1.0f;
    }
}

/* dyᵀ·x, which in the other layout is its transpose xᵀ·dy. */
static void weight_gradient(const struct linear *layer, int64_t rows, const float *x,
                            int64_t x_stride, const float *dy, int64_t dy_stride, float beta,
                            float *weight)
{
    if (layer->layout == LINEAR_OUT_IN)
        transposed_product(rows, dy, dy_stride, layer->out, x, x_stride, layer->in, beta, weight,
                           weight_stride(layer));
    else
        transposed_product(rows, x, x_stride, layer->in, dy, dy_stride, layer->out, beta, weight,
                           weight_stride(layer));
}

/* A sum over rows takes as many columns at a time as stay in the nearest cache, and so many rows,
 * that a long sum is one of shorter sums, which round less. */
enum { SUM_COLUMNS = 512, SUM_ROWS = 128 };

static void add_rows(int64_t rows, int64_t columns, const float *restrict dy, int64_t dy_stride,
                     float *restrict sum)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < columns; o++)
            sum[o] += dy[i * dy_stride + o];
}

/* bias += Σ_rows dy */
static void bias_gradient(int64_t rows, int64_t out, const float *dy, int64_t dy_stride,
                          float *bias)
{
    for (int64_t i = 0; i < rows; i += SUM_ROWS)
        for (int64_t o = 0; o < out; o += SUM_COLUMNS) {
            const int64_t height = rows - i < SUM_ROWS ? rows - i : SUM_ROWS;
            const int64_t width = out - o < SUM_COLUMNS ? out - o : SUM_COLUMNS;
            float sum[SUM_COLUMNS] = {0};
            add_rows(height, width, dy + i * dy_stride + o, dy_stride, sum);
            add_rows(1, width, sum, 0, bias + o);
        }
}

/* What is written and gets no row at all is 0. */
static void clear_weight(const struct linear *layer, float *weight)
{
    const int64_t lines = layer->layout == LINEAR_OUT_IN ? layer->out : layer->in;
    const int64_t width = layer->layout == LINEAR_OUT_IN ? layer->in : layer->out;
    for (int64_t n = 0; n < lines; n++)
        memset(weight + n * weight_stride(layer), 0, (size_t)width * sizeof *weight);
}

void linear_backward(const struct linear *layer, int64_t rows, const float *x, int64_t x_stride,
                     const float *dy, int64_t dy_stride, float *dx, int64_t dx_stride,
                     enum gradient_mode dx_mode, const struct linear_gradient *gradient)
{
    const bool writes = gradient->mode == GRADIENT_SET;
    if (dx)
        input_gradient(layer, rows, dy, dy_stride, dx_mode == GRADIENT_SET ? 0.0f : 1.0f, dx,
                       dx_stride);
    if (gradient->weight && writes && rows == 0)
        clear_weight(layer, gradient->weight);
    if (gradient->weight)
        weight_gradient(layer, rows, x, x_stride, dy, dy_stride, writes ? 0.0f : 1.0f,
                        gradient->weight);
    if (gradient->bias && writes)
        memset(gradient->bias, 0, (size_t)layer->out * sizeof *gradient->bias);
    if (gradient->bias)
        bias_gradient(rows, layer->out, dy, dy_stride, gradient->bias);
}
