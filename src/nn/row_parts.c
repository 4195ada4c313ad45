#include "nn/row_parts.h"

#include "attention/context.h"

/* Rows that a part has at least, so that adding up its sums is little beside making them. */
enum { LEAST_ROWS = 8 };

static int64_t rows_a_part(int64_t rows)
{
    int64_t needed = rows / ROW_PARTS + (rows % ROW_PARTS != 0);
    return needed < LEAST_ROWS ? LEAST_ROWS : needed;
}

int64_t row_parts(int64_t rows)
{
    int64_t size = rows_a_part(rows);
    return rows / size + (rows % size != 0);
}

struct row_parts {
    void (*body)(const void *user, int64_t part, int64_t first, int64_t count);
    const void *user;
    int64_t rows, rows_a_part;
};

static void run_part(void *user, int64_t part, int thread)
{
    (void)thread;
    const struct row_parts *parts = user;
    int64_t first = part * parts->rows_a_part;
    int64_t left = parts->rows - first;
    parts->body(parts->user, part, first, left < parts->rows_a_part ? left : parts->rows_a_part);
}

void row_parts_for(const struct compute *compute, int64_t rows,
                   void (*body)(const void *user, int64_t part, int64_t first, int64_t count),
                   const void *user)
{
    struct row_parts parts = {body, user, rows, rows_a_part(rows)};
    int64_t count = row_parts(rows);
    if (count > 0)
        attn_context_run(compute->attention, count, run_part, &parts);
}
