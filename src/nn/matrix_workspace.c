#include "nn/matrix_workspace.h"

#include <string.h>

#include "attention/scratch.h"
#include "base/checked.h"
#include "base/memory.h"

enum {
    BLOCK_NUMBERS = 160 * 1024, /* of an unpacked block: 640 KiB of L2 beside a few panels */
    LEAST_ROWS = 24,            /* of a block; whole tiles, and room for a panel's rows in bf16 */
    LINE = ATTN_ALIGNMENT / (int)sizeof(float)
};

int64_t matrix_row_stride(int64_t in)
{
    int64_t lines = in / LINE + (in % LINE != 0);
    return (lines | 1) * LINE;
}

int64_t matrix_block_rows(int64_t in)
{
    int64_t rows = MATRIX_BLOCK_ROWS;
    while (rows > LEAST_ROWS && rows > BLOCK_NUMBERS / matrix_row_stride(in))
        rows /= 2;
    return rows;
}

/* Of a vector of `in` numbers at most, for any type. */
static int64_t largest_vector(const struct compute *compute, int64_t in)
{
    int64_t rest = in % ATTN_MATRIX_LARGEST_BLOCK, bytes = 0;
    int64_t width = in + (rest ? ATTN_MATRIX_LARGEST_BLOCK - rest : 0);
    for (int type = 0; type < ATTN_MATRIX_TYPES; type++) {
        int64_t needed =
            compute->kernels->matrices->vector_bytes((enum attn_matrix_type)type, width);
        bytes = bytes < needed ? needed : bytes;
    }
    return bytes;
}

/* Of a block of at most `in` columns: fewer columns may make more rows, up to BLOCK_NUMBERS. */
static int64_t largest_block(int64_t in)
{
    const int64_t rows = matrix_block_rows(in), numbers = rows * matrix_row_stride(in);
    return rows < MATRIX_BLOCK_ROWS && numbers < BLOCK_NUMBERS ? BLOCK_NUMBERS : numbers;
}

_Static_assert(MATRIX_FEW_ROWS *MATRIX_VECTOR_ROWS >= ATTN_MAX_LANES * MATRIX_BLOCK_ROWS,
               "`rows` of matrix_scratch has room for both");

static struct matrix_scratch take_scratch(int64_t block, struct attn_scratch *memory)
{
    return (struct matrix_scratch){
        .weights = attn_scratch_floats(memory, block, 1),
        .sums = attn_scratch_floats(memory, MATRIX_BLOCK_ROWS, ATTN_MAX_LANES),
        .rows = attn_scratch_floats(memory, MATRIX_FEW_ROWS, MATRIX_VECTOR_ROWS),
        .maximum = attn_scratch_floats(memory, 1, ATTN_MAX_LANES),
    };
}

static void take_shared(struct matrix_workspace *workspace, int64_t rows, int64_t in,
                        struct attn_scratch *memory)
{
    const int64_t lanes = ATTN_MAX_LANES;
    const int64_t panels = rows > MATRIX_FEW_ROWS ? rows / lanes + (rows % lanes != 0) : 0;
    workspace->vectors = attn_scratch_take(memory, ATTN_MATRIX_TYPES, workspace->bytes_a_type, 1);
    workspace->panels = attn_scratch_take(memory, panels * lanes, in, (int64_t)sizeof(float));
}

bool matrix_workspace_create(struct matrix_workspace **workspace, const struct compute *compute,
                             int64_t rows, int64_t in, struct attn_error *error)
{
    *workspace = NULL;
    const struct attn_allocator *allocator = &attn_allocator_default;
    /* What is rounded up must fit too. */
    const int64_t limit = INT64_MAX / 1024;
    if (rows > limit || in > limit)
        return attn_error_memory(error);
    struct matrix_workspace made = {.bytes_a_type = MATRIX_FEW_ROWS * largest_vector(compute, in)};
    struct attn_scratch own = {NULL, 0, false}, shared = {NULL, 0, false};
    take_scratch(largest_block(in), &own);
    attn_scratch_take(&shared, 1, 1, (int64_t)sizeof made);
    take_shared(&made, rows, in, &shared);
    made.bytes_a_thread = own.used;
    int64_t bytes;
    if (own.overflow || shared.overflow ||
        !attn_checked_multiply(own.used, attn_context_threads(compute->attention), &bytes) ||
        !attn_checked_add(bytes, shared.used, &bytes) || (uint64_t)bytes > SIZE_MAX)
        return attn_error_memory(error);

    char *memory = allocator->allocate(allocator->user, (size_t)bytes, ATTN_ALIGNMENT);
    if (!memory)
        return attn_error_memory(error);
    struct attn_scratch parts = {memory, 0, false};
    struct matrix_workspace *result = attn_scratch_take(&parts, 1, 1, (int64_t)sizeof *result);
    take_shared(&made, rows, in, &parts);
    made.scratch = memory + parts.used;
    made.block_numbers = largest_block(in);
    *result = made;
    *workspace = result;
    return true;
}

void matrix_workspace_destroy(struct matrix_workspace *workspace)
{
    if (workspace)
        attn_allocator_default.release(attn_allocator_default.user, workspace);
}

struct matrix_scratch matrix_scratch_of(const struct matrix_workspace *workspace, int thread)
{
    struct attn_scratch memory = {workspace->scratch + thread * workspace->bytes_a_thread, 0,
                                  false};
    return take_scratch(workspace->block_numbers, &memory);
}

static void write_row(int64_t count, const float *restrict sums, const float *restrict bias,
                      enum matrix_output output, float *restrict y)
{
    if (output == MATRIX_SET && !bias)
        memcpy(y, sums, (size_t)count * sizeof *y);
    else if (output == MATRIX_SET)
        for (int64_t c = 0; c < count; c++)
            y[c] = sums[c] + bias[c];
    else if (!bias)
        for (int64_t c = 0; c < count; c++)
            y[c] += sums[c];
    else
        for (int64_t c = 0; c < count; c++)
            y[c] += sums[c] + bias[c];
}

void matrix_write(const struct matrix_product *product, int64_t row, int64_t rows, int64_t first,
                  int64_t columns, const float *sums, int64_t stride)
{
    const float *bias = product->bias ? product->bias + first : NULL;
    for (int64_t n = 0; n < rows; n++)
        write_row(columns, sums + n * stride, bias, product->output,
                  product->y + (row + n) * product->y_stride + first);
}
