/* The length of the gradient of all parameters together, and how much of it a step may use. */
#ifndef ATTN_TRAIN_GRADIENT_NORM_H
#define ATTN_TRAIN_GRADIENT_NORM_H

#include "model/parameters.h"
#include "nn/compute.h"

/* *norm = √Σ gradient², summed in double in an order that does not depend on the threads. Refuses a
 * gradient with NaN or an infinity: "the gradient is not finite". */
bool gradient_norm(const struct parameters *parameters, const struct compute *compute, double *norm,
                   struct attn_error *error);

/* What to multiply the gradient by so that its norm is at most `maximum` (R. Pascanu et al., 2013,
 * algorithm 1); maximum 0 stands for no limit. */
double gradient_clip_factor(double norm, double maximum);

#endif
