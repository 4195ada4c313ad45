/* Layer normalisation (J. Ba et al. 2016) of x + bias. */
#ifndef ATTN_NN_LAYER_NORM_H
#define ATTN_NN_LAYER_NORM_H

#include <stdint.h>

#include "nn/compute.h"
#include "nn/gradient.h"

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

struct layer_norm_gradient {
    float *gain, *shift; /* [width] each; NULL: not wanted */
    enum gradient_mode mode;
};

/* From dy[rows][width]; x is what layer_norm_forward was given, with its bias added. With
 * x̂ = (x − mean)/√(var + ε) and g = dy∘gain:
 *     dx = (g − mean(g) − x̂·mean(g∘x̂)) / √(var + ε)      dgain = Σ_rows dy∘x̂      dshift = Σ_rows
 * dy dx is written or added to; it may be dy where it is written. The sums over rows do not depend
 * on the number of threads. */
bool layer_norm_backward(const struct compute *compute, const struct layer_norm *layer,
                         int64_t rows, const float *x, const float *dy, float *dx,
                         enum gradient_mode dx_mode, const struct layer_norm_gradient *gradient,
                         struct attn_error *error);

#endif
