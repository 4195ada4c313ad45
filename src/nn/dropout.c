#include "nn/dropout.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/splitmix.h"
#include "kernel/kernel.h"
#include "nn/row_blocks.h"

uint64_t dropout_seed(uint64_t seed, int64_t step, int64_t place)
{
    uint64_t which = (uint64_t)step << 16 ^ (uint64_t)place;
    return attn_splitmix((attn_splitmix(seed + ATTN_SPLITMIX_STEP) ^ which) + ATTN_SPLITMIX_STEP);
}

/* The attention kernels have a row a lane and look at columns as they look at keys. */
enum { COLUMNS = 64 };

struct dropout_work {
    const struct attn_kernels *kernels;
    const struct dropout *dropout;
    int64_t rows, width;
    int rows_a_panel;
    const float *x;
    float *y;
};

/* At most a panel of rows, whose numbers have the same upper half. */
static void drop_panel(const struct dropout_work *work, int64_t first, int64_t rows)
{
    _Alignas(ATTN_ALIGNMENT) float panel[COLUMNS * ATTN_MAX_LANES];
    _Alignas(ATTN_ALIGNMENT) float factors[COLUMNS * ATTN_MAX_LANES];
    const struct attn_kernels *kernels = work->kernels;
    const int lanes =
        rows > kernels->vector_lanes ? 2 * kernels->vector_lanes : kernels->vector_lanes;
    const uint64_t row = (uint64_t)work->dropout->first_row + (uint64_t)first;
    struct attn_dropout_place place = {
        .seed = work->dropout->seed,
        .row = (uint32_t)row,
        .head = (uint32_t)(row >> 32),
        .threshold = (uint64_t)ceil((double)work->dropout->rate * 0x1p32),
        .kept = (float)(1.0 / (1.0 - (double)work->dropout->rate)),
    };
    for (int64_t c = 0; c < work->width; c += COLUMNS) {
        const int64_t left = work->width - c, count = left < COLUMNS ? left : COLUMNS;
        const int64_t begin = first * work->width + c;
        place.key = (uint32_t)c;
        kernels->dropout(&place, lanes, count, factors);
        kernels->pack_queries(work->x + begin, work->width, 1, rows, count, lanes, panel);
        kernels->multiply(panel, factors, count * lanes);
        kernels->unpack_output(panel, lanes, count, work->y + begin, work->width, 1, rows);
    }
}

static void drop_panels(const void *user, int64_t first, int64_t count)
{
    const struct dropout_work *work = user;
    const int64_t begin = first * work->rows_a_panel;
    const int64_t left = work->rows - begin, all = count * work->rows_a_panel;
    const int64_t end = begin + (left < all ? left : all);
    for (int64_t i = begin; i < end;) {
        /* Rows until the lower half of their number begins anew. */
        uint64_t row = (uint64_t)work->dropout->first_row + (uint64_t)i;
        int64_t rows = (int64_t)((UINT64_C(1) << 32) - (uint32_t)row);
        if (rows > work->rows_a_panel)
            rows = work->rows_a_panel;
        if (rows > end - i)
            rows = end - i;
        drop_panel(work, i, rows);
        i += rows;
    }
}

void dropout_apply(const struct compute *compute, const struct dropout *dropout, int64_t rows,
                   int64_t width, const float *x, float *y)
{
    if (dropout->rate == 0.0f) {
        if (y != x)
            memcpy(y, x, (size_t)rows * (size_t)width * sizeof *y);
        return;
    }
    struct dropout_work work = {compute->kernels, dropout, rows, width, 0, x, y};
    work.rows_a_panel = 2 * compute->kernels->vector_lanes;
    const int64_t panels = rows / work.rows_a_panel + (rows % work.rows_a_panel != 0);
    row_blocks_for(compute, panels, width * work.rows_a_panel, drop_panels, &work);
}
