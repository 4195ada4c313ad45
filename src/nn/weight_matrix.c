#include "nn/weight_matrix.h"

#include "kernel/kernel.h"

void weight_matrix_row(const struct compute *compute, const struct weight_matrix *matrix,
                       int64_t row, float *values)
{
    const char *data = matrix->data;
    compute->kernels->matrices->unpack(matrix->type,
                                       data + row * attn_matrix_row_bytes(matrix->type, matrix->in),
                                       0, matrix->in, values);
}
