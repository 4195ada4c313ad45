#include "nn/embedding_table.h"

#include <string.h>

#include "nn/row_blocks.h"

static void add_numbers(int64_t count, const float *restrict x, float *restrict y)
{
    for (int64_t c = 0; c < count; c++)
        y[c] += x[c];
}

struct forward_work {
    const float *table;
    int64_t width;
    const int32_t *ids;
    float *y;
    enum gradient_mode mode;
};

static void look_up_rows(const void *user, int64_t first, int64_t count)
{
    const struct forward_work *work = user;
    for (int64_t t = first; t < first + count; t++) {
        const float *row = work->table + work->ids[t] * work->width;
        float *y = work->y + t * work->width;
        if (work->mode == GRADIENT_SET)
            memcpy(y, row, (size_t)work->width * sizeof *y);
        else
            add_numbers(work->width, row, y);
    }
}

void embedding_table_forward(const struct compute *compute, const float *table, int64_t width,
                             int64_t tokens, const int32_t *ids, float *y, enum gradient_mode mode)
{
    struct forward_work work = {table, width, ids, y, mode};
    row_blocks_for(compute, tokens, width, look_up_rows, &work);
}

/* Two tokens may share a row, so that threads share columns instead: a few cache lines of each row
 * are one thread's, who goes through all tokens in order. */
enum { COLUMNS = 64 };

struct backward_work {
    int64_t width, tokens;
    const int32_t *ids;
    const float *dy;
    float *gradient;
};

static void add_columns(const void *user, int64_t first, int64_t count)
{
    const struct backward_work *work = user;
    const int64_t begin = first * COLUMNS, left = work->width - begin;
    const int64_t width = left < count * COLUMNS ? left : count * COLUMNS;
    for (int64_t t = 0; t < work->tokens; t++)
        add_numbers(width, work->dy + t * work->width + begin,
                    work->gradient + work->ids[t] * work->width + begin);
}

void embedding_table_backward(const struct compute *compute, int64_t width, int64_t tokens,
                              const int32_t *ids, const float *dy, float *gradient)
{
    struct backward_work work = {width, tokens, ids, dy, gradient};
    const int64_t pieces = width / COLUMNS + (width % COLUMNS != 0);
    row_blocks_for(compute, pieces, tokens * COLUMNS, add_columns, &work);
}
