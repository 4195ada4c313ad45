/* Root-mean-square normalisation (B. Zhang, R. Sennrich, 2019): y = x / √(mean(x²) + ε) ∘ gain. */
#ifndef ATTN_NN_RMS_NORM_H
#define ATTN_NN_RMS_NORM_H

#include <stdint.h>

#include "nn/compute.h"
#include "nn/gradient.h"

struct rms_norm {
    const float *gain; /* [width] */
    int64_t width;
    float epsilon;
};

/* y[rows][width] from x[rows][width], both packed; y may be x. */
void rms_norm_forward(const struct compute *compute, const struct rms_norm *layer, int64_t rows,
                      const float *x, float *y);

struct rms_norm_gradient {
    float *gain; /* [width]; NULL: not wanted */
    enum gradient_mode mode;
};

/* From dy[rows][width] and the x of the forward pass. With r = 1/√(mean(x²) + ε) and g = dy∘gain:
 *     dx = r·g − x·r³·mean(g∘x)      dgain = Σ_rows dy∘x·r
 * dx is written or added to; it may be dy where it is written. */
bool rms_norm_backward(const struct compute *compute, const struct rms_norm *layer, int64_t rows,
                       const float *x, const float *dy, float *dx, enum gradient_mode dx_mode,
                       const struct rms_norm_gradient *gradient, struct attn_error *error);

#endif
