/* Softmax cross-entropy: how far the predicted words are from the true ones. */
#ifndef ATTN_NN_CROSS_ENTROPY_H
#define ATTN_NN_CROSS_ENTROPY_H

#include <stdint.h>

#include "nn/compute.h"

/* The label of a row that does not count; as PyTorch's. */
enum { CROSS_ENTROPY_IGNORE = -100 };

struct cross_entropy {
    double loss;    /* the sum of −ln softmax(logits)[label] over rows that count */
    int64_t counts; /* how many do */
};

/* Adds the rows of logits[rows][classes] to *sum; row r begins at r·stride. Where `gradient` is
 * not NULL it is written, with the same stride, and may be the logits themselves:
 *     gradient = gradient_scale · (softmax(logits) − one at the label), 0 in rows that do not count
 * With gradient_scale 1/n, n the labels that count in the whole batch, that is the gradient of the
 * mean. Labels are 0..classes−1 or CROSS_ENTROPY_IGNORE; another one is refused, naming row and
 * label, before anything is written. */
bool cross_entropy_add(const struct compute *compute, int64_t rows, int64_t classes,
                       const float *logits, int64_t stride, const int32_t *labels,
                       float gradient_scale, float *gradient, struct cross_entropy *sum,
                       struct attn_error *error);

#endif
