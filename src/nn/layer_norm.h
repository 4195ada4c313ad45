/* Layer normalisation (J. Ba et al. 2016) of x + bias. */
#ifndef ATTN_NN_LAYER_NORM_H
#define ATTN_NN_LAYER_NORM_H

#include <stdint.h>

#include "nn/compute.h"

struct layer_norm {
    const float *gain;  /* [width] */
    const float *shift; /* [width] */
    int64_t width;
    float epsilon;
};

/* y[rows][width] from x[rows][width], both packed; y may be x. bias is [width] or NULL. Rows are
 * shared over the context's threads. */
void layer_norm_forward(const struct compute *compute, const struct layer_norm *layer, int64_t rows,
                        const float *x, const float *bias, float *y);

#endif
