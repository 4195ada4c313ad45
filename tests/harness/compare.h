/* Comparisons of whole arrays; a failure tells the worst place. NaN and infinities compare by class
 * and sign: where NaN is expected any NaN is right, and nothing else is. */
#ifndef ATTN_TESTS_HARNESS_COMPARE_H
#define ATTN_TESTS_HARNESS_COMPARE_H

#include <stddef.h>

/* The same bits; a NaN of other bits differs. */
#define CHECK_SAME_BITS(actual, expected, count)                                                   \
    compare_bits(__FILE__, __LINE__, #actual, actual, expected, count)
void compare_bits(const char *file, int line, const char *what, const float *actual,
                  const float *expected, size_t count);

/* |actual[i] − expected[i]| ≤ factor · tolerance[i] */
#define CHECK_NEAR(actual, expected, factor, tolerance, count)                                     \
    compare_near(__FILE__, __LINE__, #actual, actual, expected, factor, tolerance, count)
void compare_near(const char *file, int line, const char *what, const float *actual,
                  const double *expected, double factor, const double *tolerance, size_t count);

/* The same of doubles, with a factor of 1. */
#define CHECK_NEAR_DOUBLES(actual, expected, tolerance, count)                                     \
    compare_near_doubles(__FILE__, __LINE__, #actual, actual, expected, tolerance, count)
void compare_near_doubles(const char *file, int line, const char *what, const double *actual,
                          const double *expected, const double *tolerance, size_t count);

/* |actual − expected| ≤ tolerance */
#define CHECK_WITHIN(actual, expected, tolerance)                                                  \
    compare_one(__FILE__, __LINE__, #actual, actual, expected, tolerance)
void compare_one(const char *file, int line, const char *what, double actual, double expected,
                 double tolerance);

/* All elements are `value` (by class and sign where not finite, otherwise exactly; −0 is 0). */
#define CHECK_ALL(actual, value, count)                                                            \
    compare_all(__FILE__, __LINE__, #actual, actual, value, count)
void compare_all(const char *file, int line, const char *what, const float *actual, float value,
                 size_t count);

/* Nothing was written since guarded_floats. */
#define CHECK_UNWRITTEN(actual, count) compare_unwritten(__FILE__, __LINE__, #actual, actual, count)
void compare_unwritten(const char *file, int line, const char *what, const float *actual,
                       size_t count);

/* The distance in units in the last place of the float nearest to `expected`. */
double compare_ulps(float actual, double expected);

#endif
