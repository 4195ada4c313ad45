#include "nn/cross_entropy.h"

#include <stddef.h>
#include <string.h>

#include "kernel/kernel.h"
#include "nn/row_parts.h"

static bool labels_are_right(int64_t rows, int64_t classes, const int32_t *labels,
                             struct attn_error *error)
{
    for (int64_t r = 0; r < rows; r++)
        if (labels[r] != CROSS_ENTROPY_IGNORE && (labels[r] < 0 || labels[r] >= classes))
            return attn_error_set(error,
                                  "label %d of row %lld is out of range: 0 to %lld are classes, "
                                  "and %d is a row that does not count",
                                  (int)labels[r], (long long)r, (long long)classes - 1,
                                  CROSS_ENTROPY_IGNORE);
    return true;
}

struct loss_work {
    const struct attn_kernels *kernels;
    int64_t classes;
    const float *logits;
    int64_t stride;
    const int32_t *labels;
    float gradient_scale;
    float *gradient;
    struct cross_entropy *parts;
};

static void add_part(const void *user, int64_t part, int64_t first, int64_t count)
{
    const struct loss_work *work = user;
    struct cross_entropy sum = {0.0, 0};
    for (int64_t r = first; r < first + count; r++) {
        float *gradient = work->gradient ? work->gradient + r * work->stride : NULL;
        if (work->labels[r] != CROSS_ENTROPY_IGNORE) {
            sum.loss +=
                work->kernels->cross_entropy(work->logits + r * work->stride, work->classes,
                                             work->labels[r], work->gradient_scale, gradient);
            sum.counts++;
        } else if (gradient) {
            memset(gradient, 0, (size_t)work->classes * sizeof *gradient);
        }
    }
    work->parts[part] = sum;
}

bool cross_entropy_add(const struct compute *compute, int64_t rows, int64_t classes,
                       const float *logits, int64_t stride, const int32_t *labels,
                       float gradient_scale, float *gradient, struct cross_entropy *sum,
                       struct attn_error *error)
{
    if (!labels_are_right(rows, classes, labels, error))
        return false;
    struct cross_entropy parts[ROW_PARTS];
    struct loss_work work = {compute->kernels, classes,        logits,   stride,
                             labels,           gradient_scale, gradient, parts};
    row_parts_for(compute, rows, add_part, &work);
    for (int64_t n = 0; n < row_parts(rows); n++) {
        sum->loss += parts[n].loss;
        sum->counts += parts[n].counts;
    }
    return true;
}
