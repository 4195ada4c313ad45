/* Few rows of x: each weight is read once, turned into a number in registers and multiplied there,
 * at the speed of memory. Many rows: matrix_panels.c. */
#include "attention/context.h"
#include "base/float_mode.h"
#include "nn/matrix_panels.h"

enum {
    ITEM_BYTES = 32 * 1024, /* of weights in one item of work, at least, where threads share it */
    ITEMS_A_THREAD = 2,     /* of each product: what one thread does late another may take */
    ROW_STEP = 8            /* an item has whole tiles of rows, whatever the kernels' tile is */
};

struct vector_work {
    const struct compute *compute;
    const struct matrix_workspace *workspace;
    int64_t rows; /* of x, ≤ MATRIX_FEW_ROWS */
    const struct matrix_product *products;
};

static char *packed_vectors(const struct matrix_workspace *workspace, enum attn_matrix_type type)
{
    return workspace->vectors + type * workspace->bytes_a_type;
}

/* x in the order of each type that occurs; among few products it is found by looking. */
static void pack_vectors(const struct vector_work *work, const float *x, int64_t x_stride,
                         int count)
{
    const struct attn_matrix_kernels *kernels = work->compute->kernels->matrices;
    const int64_t in = work->products[0].weight->in;
    for (int p = 0; p < count; p++) {
        const enum attn_matrix_type type = work->products[p].weight->type;
        int earlier = 0;
        while (work->products[earlier].weight->type != type)
            earlier++;
        if (earlier < p)
            continue;
        const int64_t bytes = kernels->vector_bytes(type, in);
        for (int64_t n = 0; n < work->rows; n++)
            kernels->pack_vector(type, x + n * x_stride, in,
                                 packed_vectors(work->workspace, type) + n * bytes);
    }
}

/* A kernel gets up to speed only after some hundred rows, so one thread takes as many as its
 * scratch holds; several take equal parts. */
static int64_t item_rows(const struct vector_work *work, const struct weight_matrix *weight)
{
    const int threads = attn_context_threads(work->compute->attention);
    const int64_t bytes = weight->out * attn_matrix_row_bytes(weight->type, weight->in);
    int64_t items = threads > 1 ? ITEMS_A_THREAD * threads : 1;
    if (items > 1 + bytes / ITEM_BYTES)
        items = 1 + bytes / ITEM_BYTES;
    const int64_t rows = (weight->out / items + ROW_STEP) / ROW_STEP * ROW_STEP;
    return rows < MATRIX_VECTOR_ROWS ? rows : MATRIX_VECTOR_ROWS;
}

static int64_t items_of(const struct vector_work *work, const struct weight_matrix *weight)
{
    const int64_t rows = item_rows(work, weight);
    return weight->out / rows + (weight->out % rows != 0);
}

/* All vectors with some rows of weights, as many at once as the kernel takes. */
static void multiply_passes(const struct vector_work *work, const struct weight_matrix *weight,
                            int64_t first, int64_t rows, float *y, int64_t y_stride)
{
    const struct attn_matrix_kernels *kernels = work->compute->kernels->matrices;
    const int64_t bytes = kernels->vector_bytes(weight->type, weight->in);
    const char *packed = packed_vectors(work->workspace, weight->type);
    const char *data =
        (const char *)weight->data + first * attn_matrix_row_bytes(weight->type, weight->in);
    for (int64_t n = 0; n < work->rows; n += ATTN_MATRIX_VECTORS) {
        const int64_t left = work->rows - n;
        kernels->multiply(weight->type, data, rows, weight->in, packed + n * bytes,
                          left < ATTN_MATRIX_VECTORS ? left : ATTN_MATRIX_VECTORS, y + n * y_stride,
                          y_stride);
    }
}

static void multiply_rows(void *state, int64_t item, int thread)
{
    const struct vector_work *work = state;
    const struct matrix_product *product = work->products;
    while (item >= items_of(work, product->weight))
        item -= items_of(work, product++->weight);
    const struct weight_matrix *weight = product->weight;
    const int64_t step = item_rows(work, weight), first = item * step, left = weight->out - first;
    const int64_t rows = left < step ? left : step;
    if (matrix_is_plain(product)) {
        multiply_passes(work, weight, first, rows, product->y + first, product->y_stride);
        return;
    }
    const struct matrix_scratch scratch = matrix_scratch_of(work->workspace, thread);
    multiply_passes(work, weight, first, rows, scratch.rows, MATRIX_VECTOR_ROWS);
    matrix_write(product, 0, work->rows, first, rows, scratch.rows, MATRIX_VECTOR_ROWS);
}

static void multiply_vectors(const struct vector_work *work, const float *x, int64_t x_stride,
                             int count)
{
    const uint64_t modes = attn_float_mode_enter();
    pack_vectors(work, x, x_stride, count);
    attn_float_mode_leave(modes);
    int64_t items = 0;
    for (int p = 0; p < count; p++)
        items += items_of(work, work->products[p].weight);
    struct vector_work shared = *work;
    attn_context_run(work->compute->attention, items, multiply_rows, &shared);
}

void matrix_products(const struct compute *compute, struct matrix_workspace *workspace,
                     attn_precision precision, int64_t rows, const float *x, int64_t x_stride,
                     const struct matrix_product *products, int count)
{
    if (rows == 0 || count == 0)
        return;
    if (rows > MATRIX_FEW_ROWS) {
        matrix_panels_multiply(compute, workspace, precision, rows, x, x_stride, products, count);
        return;
    }
    const struct vector_work work = {compute, workspace, rows, products};
    multiply_vectors(&work, x, x_stride, count);
}
