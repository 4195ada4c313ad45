#include "differences.h"

#include <math.h>
#include <stdlib.h>

#include "cmocka_test.h"

void assert_gradient(const float *gradient, difference_function *function, double *x, size_t count,
                     const void *user, double tolerance)
{
    for (size_t n = 0; n < count; n++) {
        const double middle = x[n], step = 1e-5 * fmax(1.0, fabs(middle));
        x[n] = middle + step;
        double above = function(x, user);
        x[n] = middle - step;
        double below = function(x, user);
        x[n] = middle;
        double expected = (above - below) / (2.0 * step);
        if (!(fabs((double)gradient[n] - expected) <= tolerance))
            fail_msg("gradient %zu of %zu is %.9g, expected %.9g within %g", n, count,
                     (double)gradient[n], expected, tolerance);
    }
}

double *in_double(const float *x, size_t count)
{
    double *wide = malloc((count + 1) * sizeof *wide);
    assert_non_null(wide);
    for (size_t n = 0; n < count; n++)
        wide[n] = (double)x[n];
    return wide;
}
