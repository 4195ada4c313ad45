/* Gradients against finite differences of a definition in double. */
#ifndef ATTN_TESTS_DIFFERENCES_H
#define ATTN_TESTS_DIFFERENCES_H

#include <stddef.h>

/* A number that depends on x[count]: a layer's Σ dy·y, or its loss. */
typedef double difference_function(const double *x, const void *user);

/* gradient[n] is ∂function/∂x[n] within `tolerance`, by central differences. x is changed while
 * this runs, and put back. */
void assert_gradient(const float *gradient, difference_function *function, double *x, size_t count,
                     const void *user, double tolerance);

/* Floats as doubles, newly allocated. */
double *in_double(const float *x, size_t count);

#endif
