#include "nn/norm_backward.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "nn/row_parts.h"

struct norm_work {
    norm_backward_kernel *kernel;
    struct attn_norm_gradient gradient;
    float epsilon;
    int64_t width;
    float *gains, *shifts; /* [parts][width] */
};

static void norm_part(const void *user, int64_t part, int64_t first, int64_t count)
{
    const struct norm_work *work = user;
    const int64_t begin = first * work->width, sums = part * work->width;
    struct attn_norm_gradient gradient = work->gradient;
    gradient.x += begin;
    gradient.dy += begin;
    gradient.dx += begin;
    if (gradient.added)
        gradient.added += begin;
    if (gradient.d_gain)
        gradient.d_gain = work->gains + sums;
    if (gradient.d_shift)
        gradient.d_shift = work->shifts + sums;
    work->kernel(&gradient, work->epsilon, count, work->width);
}

/* to = or += Σ_parts sums, which the first part's place gathers. */
static void add_parts(float *sums, int64_t parts, int64_t width, enum gradient_mode mode, float *to)
{
    if (!to)
        return;
    for (int64_t n = 1; n < parts; n++)
        for (int64_t c = 0; c < width; c++)
            sums[c] += sums[n * width + c];
    for (int64_t c = 0; c < width; c++) {
        float sum = parts > 0 ? sums[c] : 0.0f;
        to[c] = mode == GRADIENT_SET ? sum : to[c] + sum;
    }
}

bool norm_backward(const struct compute *compute, norm_backward_kernel *kernel,
                   const struct attn_norm_gradient *gradient, float epsilon, int64_t rows,
                   int64_t width, enum gradient_mode mode, struct attn_error *error)
{
    const int64_t parts = row_parts(rows);
    float *sums = NULL;
    if ((gradient->d_gain || gradient->d_shift) && parts > 0) {
        sums = calloc((size_t)(2 * parts), (size_t)width * sizeof *sums);
        if (!sums)
            return attn_error_memory(error);
    }

    struct norm_work work = {kernel, *gradient, epsilon, width, sums, NULL};
    if (sums)
        work.shifts = sums + parts * width;
    row_parts_for(compute, rows, norm_part, &work);
    add_parts(work.gains, parts, width, mode, gradient->d_gain);
    add_parts(work.shifts, parts, width, mode, gradient->d_shift);
    free(sums);
    return true;
}
