#include "train/gradient_norm.h"

#include <math.h>
#include <stdlib.h>

#include "nn/row_blocks.h"

enum {
    BLOCK = 16384, /* numbers with a sum of their own, whoever computes it */
    LANES = 8      /* sums beside each other, for vector registers */
};

struct norm_work {
    const float *gradients;
    int64_t count;
    double *sums; /* one a block */
};

static double sum_squares(const float *x, int64_t count)
{
    double lanes[LANES] = {0};
    int64_t whole = count - count % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int64_t lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
    double sum = 0.0;
    for (int64_t i = whole; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static void sum_blocks(const void *user, int64_t first, int64_t count)
{
    const struct norm_work *work = user;
    for (int64_t block = first; block < first + count; block++) {
        int64_t begin = block * BLOCK;
        int64_t left = work->count - begin;
        work->sums[block] = sum_squares(work->gradients + begin, left < BLOCK ? left : BLOCK);
    }
}

bool gradient_norm(const struct parameters *parameters, const struct compute *compute, double *norm,
                   struct attn_error *error)
{
    int64_t blocks = parameters->count / BLOCK + (parameters->count % BLOCK != 0);
    double *sums = calloc((size_t)blocks + 1, sizeof *sums);
    if (!sums)
        return attn_error_memory(error);
    struct norm_work work = {parameters->gradients, parameters->count, sums};
    row_blocks_for(compute, blocks, BLOCK, sum_blocks, &work);
    double sum = 0.0;
    for (int64_t block = 0; block < blocks; block++)
        sum += sums[block];
    free(sums);
    /* Squares of floats, and sums of them, cannot overflow a double. */
    if (!isfinite(sum))
        return attn_error_set(error, "the gradient is not finite");
    *norm = sqrt(sum);
    return true;
}

double gradient_clip_factor(double norm, double maximum)
{
    return maximum > 0.0 && norm > maximum ? maximum / norm : 1.0;
}
