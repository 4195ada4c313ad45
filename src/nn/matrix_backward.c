#include "nn/matrix_backward.h"

#include "nn/linear.h"
#include "nn/row_blocks.h"

enum {
    BLOCK_NUMBERS = 1024 * 1024, /* unpacked at once: 4 MiB stay in a shared cache, and threads meet
                                    once for most matrices of a layer */
    LEAST_ROWS = 16              /* of a block, so that a product has something to sum */
};

static int64_t block_rows(int64_t in)
{
    return in < BLOCK_NUMBERS / LEAST_ROWS ? BLOCK_NUMBERS / (in > 0 ? in : 1) : LEAST_ROWS;
}

int64_t matrix_backward_workspace(int64_t in)
{
    /* Fewer columns make more rows, but no larger block than this. */
    return in < BLOCK_NUMBERS / LEAST_ROWS ? BLOCK_NUMBERS : LEAST_ROWS * in;
}

/* Rows of the matrix from `first` on. */
struct unpacking {
    const struct compute *compute;
    const struct weight_matrix *weight;
    int64_t first;
    float *values;
};

static void unpack_rows(const void *user, int64_t first, int64_t count)
{
    const struct unpacking *unpacking = user;
    for (int64_t r = first; r < first + count; r++)
        weight_matrix_row(unpacking->compute, unpacking->weight, unpacking->first + r,
                          unpacking->values + r * unpacking->weight->in);
}

static bool is_plain(const struct weight_matrix *weight)
{
    return weight->type == ATTN_MATRIX_F32 && (uintptr_t)weight->data % sizeof(float) == 0;
}

void matrix_backward(const struct compute *compute, const struct weight_matrix *weight,
                     int64_t rows, const float *dy, int64_t dy_stride, float *dx, int64_t dx_stride,
                     enum gradient_mode dx_mode, float *workspace)
{
    const struct linear_gradient none = {0};
    const bool plain = is_plain(weight);
    const int64_t step = plain ? weight->out : block_rows(weight->in);
    for (int64_t first = 0; first < weight->out; first += step) {
        const int64_t left = weight->out - first;
        struct linear block = {.in = weight->in, .out = left < step ? left : step};
        if (plain) {
            block.weight = weight->data;
        } else {
            const struct unpacking unpacking = {compute, weight, first, workspace};
            row_blocks_for(compute, block.out, weight->in, unpack_rows, &unpacking);
            block.weight = workspace;
        }
        linear_backward(&block, rows, NULL, 0, dy + first, dy_stride, dx, dx_stride,
                        first == 0 ? dx_mode : GRADIENT_ADD, &none);
    }
}
