#include "nn/row_blocks.h"

#include "attention/context.h"

/* Numbers a block: enough work (microseconds) to be worth handing out, little enough to share
 * evenly. */
enum { BLOCK_NUMBERS = 16384 };

struct row_blocks {
    void (*body)(const void *user, int64_t first, int64_t count);
    const void *user;
    int64_t rows, rows_a_block;
};

static void run_block(void *user, int64_t block, int thread)
{
    (void)thread;
    const struct row_blocks *blocks = user;
    int64_t first = block * blocks->rows_a_block;
    int64_t left = blocks->rows - first;
    blocks->body(blocks->user, first, left < blocks->rows_a_block ? left : blocks->rows_a_block);
}

void row_blocks_for(const struct compute *compute, int64_t rows, int64_t width,
                    void (*body)(const void *user, int64_t first, int64_t count), const void *user)
{
    if (rows == 0 || width == 0)
        return;
    int64_t rows_a_block = width < BLOCK_NUMBERS ? BLOCK_NUMBERS / width : 1;
    struct row_blocks blocks = {body, user, rows, rows_a_block};
    int64_t count = rows / rows_a_block + (rows % rows_a_block != 0);
    attn_context_run(compute->attention, count, run_block, &blocks);
}
