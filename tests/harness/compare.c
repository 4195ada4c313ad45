#include "harness/compare.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "harness/guarded.h"
#include "harness/test.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 0 when right, NaN or positive otherwise. */
static double error_of(double actual, double expected)
{
    if (isnan(expected))
        return isnan(actual) ? 0.0 : (double)INFINITY;
    if (isinf(expected))
        return actual == expected ? 0.0 : (double)INFINITY;
    return fabs(actual - expected);
}

void compare_bits(const char *file, int line, const char *what, const float *actual,
                  const float *expected, size_t count)
{
    size_t different = 0, first = 0;
    for (size_t i = 0; i < count; i++)
        if (bits_of(actual[i]) != bits_of(expected[i]) && different++ == 0)
            first = i;
    if (different)
        test_fail(file, line, "%s: %zu of %zu differ in bits, first [%zu]: %.9g, expected %.9g",
                  what, different, count, first, (double)actual[first], (double)expected[first]);
}

/* Exactly one of floats and doubles is given. */
static void compare_numbers(const char *file, int line, const char *what, const float *floats,
                            const double *doubles, const double *expected, double factor,
                            const double *tolerance, size_t count)
{
    size_t wrong = 0, worst = 0;
    double worst_excess = 0, worst_actual = 0;
    for (size_t i = 0; i < count; i++) {
        double allowed = factor * tolerance[i];
        double actual = floats ? (double)floats[i] : doubles[i];
        double error = error_of(actual, expected[i]);
        /* The tolerance of what is not finite may be NaN; class and sign are all that counts there.
         */
        if (error == 0 || error <= allowed)
            continue;
        double excess = isnan(error) ? (double)INFINITY : error / (allowed + DBL_MIN);
        if (wrong++ == 0 || excess > worst_excess) {
            worst = i;
            worst_excess = excess;
            worst_actual = actual;
        }
    }
    if (wrong)
        test_fail(file, line, "%s: %zu of %zu too far, worst [%zu]: %.9g, expected %.9g ± %.3g",
                  what, wrong, count, worst, worst_actual, expected[worst],
                  factor * tolerance[worst]);
}

void compare_near(const char *file, int line, const char *what, const float *actual,
                  const double *expected, double factor, const double *tolerance, size_t count)
{
    compare_numbers(file, line, what, actual, NULL, expected, factor, tolerance, count);
}

void compare_near_doubles(const char *file, int line, const char *what, const double *actual,
                          const double *expected, const double *tolerance, size_t count)
{
    compare_numbers(file, line, what, NULL, actual, expected, 1, tolerance, count);
}

void compare_one(const char *file, int line, const char *what, double actual, double expected,
                 double tolerance)
{
    double error = error_of(actual, expected);
    if (!(error == 0 || error <= tolerance))
        test_fail(file, line, "%s is %.9g, expected %.9g ± %.3g", what, actual, expected,
                  tolerance);
}

void compare_all(const char *file, int line, const char *what, const float *actual, float value,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(error_of(actual[i], value) <= 0)) {
            test_fail(file, line, "%s[%zu] of %zu is %.9g, expected %.9g", what, i, count,
                      (double)actual[i], (double)value);
            return;
        }
    }
}

void compare_unwritten(const char *file, int line, const char *what, const float *actual,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bits_of(actual[i]) != GUARDED_NAN_BITS) {
            test_fail(file, line, "%s[%zu] of %zu was written: %.9g", what, i, count,
                      (double)actual[i]);
            return;
        }
    }
}

double compare_ulps(float actual, double expected)
{
    if (!isfinite(actual) || !isfinite(expected))
        return error_of(actual, expected) <= 0 ? 0 : (double)INFINITY;
    int exponent;
    frexp(expected, &exponent);
    if (expected == 0 || exponent < FLT_MIN_EXP)
        exponent = FLT_MIN_EXP;
    return fabs(actual - expected) / ldexp(1.0, exponent - FLT_MANT_DIG);
}
