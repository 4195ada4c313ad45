#include "nn/matrix_panels.h"

#include <string.h>

#include "attention/context.h"
#include "kernel/dot_kernels.h"

enum {
    GROUP_BYTES = 4 * 1024 * 1024, /* of panels that meet one unpacked block of weights, at most */
    BYTES_A_WORD = 4,              /* of a panel: an f32 number, or two of bf16 */
    ITEMS_A_THREAD = 4             /* at least, so that threads end together */
};

struct panel_work {
    const struct attn_kernels *kernels;
    const struct matrix_workspace *workspace;
    bool pairs; /* products of bf16 pairs */
    int64_t rows, in;
    const float *x;
    int64_t x_stride;
    int64_t lanes; /* of a panel of two vectors */
    int64_t panels, panels_a_group, groups;
    int64_t block_rows;
    const struct matrix_product *products;
};

static int64_t round_up(int64_t count, int64_t step)
{
    return count / step + (count % step != 0);
}

/* Of a panel's column: numbers of a row of x, or pairs of them. */
static int64_t panel_words(const struct panel_work *work)
{
    return work->pairs ? round_up(work->in, 2) : work->in;
}

struct panel {
    float *data;
    int64_t row, rows; /* of x */
    int lanes;
};

/* Panels lie side by side as if all had two vectors; the last one may need one only. */
static struct panel panel_at(const struct panel_work *work, int64_t index)
{
    const int64_t row = index * work->lanes, left = work->rows - row;
    const int vector = work->kernels->vector_lanes;
    return (struct panel){
        .data = work->workspace->panels + row * work->in,
        .row = row,
        .rows = left < work->lanes ? left : work->lanes,
        .lanes = left <= vector ? vector : (int)work->lanes,
    };
}

static void pack_pairs(const struct panel_work *work, const struct panel *panel,
                       const struct matrix_scratch *scratch)
{
    const struct attn_kernels *kernels = work->kernels;
    uint16_t *halves = (uint16_t *)(void *)scratch->weights;
    for (int64_t n = 0; n < panel->rows; n++)
        kernels->narrow(ATTN_STORAGE_BF16, work->x + (panel->row + n) * work->x_stride, work->in,
                        halves + n * work->in);
    kernels->dots->pack_queries(halves, work->in, 1, panel->rows, work->in, panel->lanes,
                                (uint32_t *)(void *)panel->data);
}

static void pack_panel(void *state, int64_t index, int thread)
{
    const struct panel_work *work = state;
    const struct panel panel = panel_at(work, index);
    if (work->pairs) {
        const struct matrix_scratch scratch = matrix_scratch_of(work->workspace, thread);
        pack_pairs(work, &panel, &scratch);
    } else {
        work->kernels->pack_queries(work->x + panel.row * work->x_stride, work->x_stride, 1,
                                    panel.rows, work->in, panel.lanes, panel.data);
    }
}

/* Rows of weights as `scores` reads keys: f32, or bf16 for products of pairs. */
struct weight_rows {
    const void *data;
    int64_t stride; /* in numbers */
    int64_t rows;
};

static bool is_aligned(const void *data, size_t size)
{
    return (uintptr_t)data % size == 0;
}

static struct weight_rows exact_rows(const struct panel_work *work,
                                     const struct weight_matrix *weight, const char *data,
                                     int64_t rows, const struct matrix_scratch *scratch)
{
    if (weight->type == ATTN_MATRIX_F32 && is_aligned(data, sizeof(float)))
        return (struct weight_rows){data, work->in, rows};
    const int64_t stride = matrix_row_stride(work->in);
    const int64_t row_bytes = attn_matrix_row_bytes(weight->type, work->in);
    for (int64_t r = 0; r < rows; r++)
        work->kernels->matrices->unpack(weight->type, data + r * row_bytes, 0, work->in,
                                        scratch->weights + r * stride);
    return (struct weight_rows){scratch->weights, stride, rows};
}

static struct weight_rows rounded_rows(const struct panel_work *work,
                                       const struct weight_matrix *weight, const char *data,
                                       int64_t rows, const struct matrix_scratch *scratch)
{
    const int64_t in = work->in;
    if (weight->type == ATTN_MATRIX_BF16 && in % 2 == 0 && is_aligned(data, sizeof(uint16_t)))
        return (struct weight_rows){data, in, rows};
    const int64_t stride = 2 * matrix_row_stride((in + 1) / 2);
    const int64_t row_bytes = attn_matrix_row_bytes(weight->type, in);
    uint16_t *halves = (uint16_t *)(void *)scratch->weights;
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *row = halves + r * stride;
        work->kernels->matrices->unpack_bf16(weight->type, data + r * row_bytes, 0, in, row);
        row[in] = 0; /* the other half of the last pair; with an even `in` nobody reads it */
    }
    return (struct weight_rows){halves, stride, rows};
}

/* scratch->sums[rows][lanes] of a panel and a block of weights. */
static void multiply_panel(const struct panel_work *work, const struct panel *panel,
                           const struct weight_rows *weights, const struct matrix_scratch *scratch)
{
    const struct attn_kernels *kernels = work->kernels;
    if (work->pairs)
        kernels->dots->scores((const uint32_t *)(const void *)panel->data, panel->lanes, work->in,
                              weights->data, weights->stride, weights->rows, 1.0f, scratch->sums,
                              scratch->maximum);
    else
        kernels->scores(panel->data, panel->lanes, work->in, weights->data, weights->stride,
                        weights->rows, 1.0f, scratch->sums, scratch->maximum);
}

static void write_panel(const struct panel_work *work, const struct matrix_product *product,
                        const struct panel *panel, int64_t first, int64_t columns,
                        const struct matrix_scratch *scratch)
{
    const struct attn_kernels *kernels = work->kernels;
    if (matrix_is_plain(product)) {
        kernels->unpack_output(scratch->sums, panel->lanes, columns,
                               product->y + panel->row * product->y_stride + first,
                               product->y_stride, 1, panel->rows);
        return;
    }
    kernels->unpack_output(scratch->sums, panel->lanes, columns, scratch->rows, MATRIX_BLOCK_ROWS,
                           1, panel->rows);
    matrix_write(product, panel->row, panel->rows, first, columns, scratch->rows,
                 MATRIX_BLOCK_ROWS);
}

static int64_t blocks_of(const struct panel_work *work, const struct matrix_product *product)
{
    return round_up(product->weight->out, work->block_rows);
}

/* A block of weights and a group of panels; the blocks of a group follow each other, so that its
 * panels stay in cache. */
static void multiply_block(void *state, int64_t item, int thread)
{
    const struct panel_work *work = state;
    const struct matrix_product *product = work->products;
    while (item >= blocks_of(work, product) * work->groups)
        item -= blocks_of(work, product++) * work->groups;
    const int64_t group = item / blocks_of(work, product);
    const int64_t first = item % blocks_of(work, product) * work->block_rows;
    const struct weight_matrix *weight = product->weight;
    const int64_t left = weight->out - first;
    const int64_t rows = left < work->block_rows ? left : work->block_rows;
    const char *data =
        (const char *)weight->data + first * attn_matrix_row_bytes(weight->type, work->in);

    const struct matrix_scratch scratch = matrix_scratch_of(work->workspace, thread);
    memset(scratch.maximum, 0, ATTN_MAX_LANES * sizeof *scratch.maximum);
    const struct weight_rows weights = work->pairs
                                           ? rounded_rows(work, weight, data, rows, &scratch)
                                           : exact_rows(work, weight, data, rows, &scratch);
    const int64_t end = (group + 1) * work->panels_a_group;
    for (int64_t p = group * work->panels_a_group; p < end && p < work->panels; p++) {
        const struct panel panel = panel_at(work, p);
        multiply_panel(work, &panel, &weights, &scratch);
        write_panel(work, product, &panel, first, rows, &scratch);
    }
}

/* The kernels of the context, which has other ones once it was asked for tiles. */
static const struct attn_kernels *kernels_for(const struct compute *compute,
                                              attn_precision precision)
{
    if (precision == ATTN_PRECISION_BF16 && compute->kernels->dots)
        attn_context_ask_for_tiles(compute->attention);
    return compute->attention->kernels;
}

static int64_t count_blocks(const struct panel_work *work, int count)
{
    int64_t blocks = 0;
    for (int p = 0; p < count; p++)
        blocks += blocks_of(work, &work->products[p]);
    return blocks;
}

/* As few groups as memory near the core and the threads let there be: each unpacks the weights for
 * itself. */
static void choose_groups(struct panel_work *work, int threads, int count)
{
    const int64_t panel_bytes = work->lanes * panel_words(work) * BYTES_A_WORD;
    const int64_t fitting = panel_bytes < GROUP_BYTES ? GROUP_BYTES / (panel_bytes + 1) : 1;
    const int64_t blocks = count_blocks(work, count);
    int64_t groups = round_up(work->panels, fitting);
    if (threads > 1 && groups * blocks < (int64_t)ITEMS_A_THREAD * threads)
        groups = round_up((int64_t)ITEMS_A_THREAD * threads, blocks + (blocks == 0));
    groups = groups < work->panels ? groups : work->panels;
    work->panels_a_group = round_up(work->panels, groups);
    work->groups = round_up(work->panels, work->panels_a_group);
}

void matrix_panels_multiply(const struct compute *compute, struct matrix_workspace *workspace,
                            attn_precision precision, int64_t rows, const float *x,
                            int64_t x_stride, const struct matrix_product *products, int count)
{
    const struct attn_kernels *kernels = kernels_for(compute, precision);
    struct panel_work work = {
        .kernels = kernels,
        .workspace = workspace,
        .pairs = precision == ATTN_PRECISION_BF16 && kernels->dots,
        .rows = rows,
        .in = products[0].weight->in,
        .x = x,
        .x_stride = x_stride,
        .lanes = 2 * kernels->vector_lanes,
        .panels = round_up(rows, 2 * kernels->vector_lanes),
        .products = products,
    };
    work.block_rows = matrix_block_rows(panel_words(&work));
    choose_groups(&work, attn_context_threads(compute->attention), count);
    attn_context_run(compute->attention, work.panels, pack_panel, &work);
    attn_context_run(compute->attention, count_blocks(&work, count) * work.groups, multiply_block,
                     &work);
}
