/* cross_entropy against its definition in double. */
#include "harness/test.h"

#include <float.h>
#include <math.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/kernel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t sizes[] = {1,  2,  3,   4,   5,    7,    8,    9,    15,   16,   17,
                                31, 33, 127, 128, 1023, 1024, 1025, 1039, 2049, 50257};

static void check_row(const struct attn_kernels *kernels, int64_t classes, float level, float range,
                      enum guard_side side)
{
    struct random_source source = {(uint64_t)classes};
    size_t count = (size_t)classes;
    float *logits = guarded_floats(count, side), *gradient = guarded_floats(count, side);
    random_floats(&source, level - range, level + range, logits, count);
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    const float scale = 0.125f;
    const int64_t labels[] = {0, classes / 2, classes - 1};
    for (size_t n = 0; n < COUNT(labels); n++) {
        double largest = (double)logits[0], sum = 0;
        for (size_t c = 1; c < count; c++)
            if ((double)logits[c] > largest)
                largest = (double)logits[c];
        for (size_t c = 0; c < count; c++)
            sum += exp((double)logits[c] - largest);
        double loss = largest + log(sum) - (double)logits[labels[n]];
        for (size_t c = 0; c < count; c++) {
            double weight = exp((double)logits[c] - largest) / sum;
            bool is_label = (int64_t)c == labels[n];
            expected[c] = (double)scale * (weight - (is_label ? 1 : 0));
            /* x − m is rounded: its error is that of its size. */
            double rounding = 1e-6 + 0x1p-24 * (largest - (double)logits[c]);
            error[c] = (double)scale * (weight * rounding + (is_label ? 0x1p-24 : 0)) + 1e-38;
        }
        test_context("%d classes, %g ± %g, label %d", (int)classes, (double)level, (double)range,
                     (int)labels[n]);
        double bound = 1e-6 + 1e-14 * fabs((double)level);
        CHECK_WITHIN(kernels->cross_entropy(logits, classes, labels[n], scale, NULL), loss, bound);
        CHECK_WITHIN(kernels->cross_entropy(logits, classes, labels[n], scale, gradient), loss,
                     bound);
        CHECK_NEAR(gradient, expected, 1, error, count);
    }
    kernels->cross_entropy(logits, classes, classes - 1, scale, logits);
    CHECK_SAME_BITS(logits, gradient, count); /* in place */
    guarded_release_all();
}

static void rows_of_all_sizes(attn_isa isa)
{
    for (size_t n = 0; n < COUNT(sizes); n++)
        for (size_t side = 0; side < COUNT(sides); side++) {
            check_row(attn_kernels_for(isa), sizes[n], 0, 4, sides[side]);
            check_row(attn_kernels_for(isa), sizes[n], -1e4f, 20, sides[side]);
            check_row(attn_kernels_for(isa), sizes[n], 1e4f, 200, sides[side]);
        }
}

/* Only the label, and only another class, has any weight. */
static void certain_rows(attn_isa isa)
{
    float logits[37], gradient[37];
    for (int c = 0; c < 37; c++)
        logits[c] = -1e4f;
    logits[20] = 1e4f;
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    CHECK_WITHIN(kernels->cross_entropy(logits, 37, 20, 1, gradient), 0, 0);
    CHECK_ALL(gradient, 0, 37);
    CHECK_WITHIN(kernels->cross_entropy(logits, 37, 36, 2, gradient), 2e4, 0);
    CHECK_ALL(gradient, 0, 20);
    CHECK_WITHIN((double)gradient[20], 2, 0);
    CHECK_WITHIN((double)gradient[36], -2, 0);
    for (int c = 0; c < 37; c++)
        logits[c] = c == 20 ? 3.0f : -FLT_MAX;
    CHECK_WITHIN(kernels->cross_entropy(logits, 37, 20, 1, gradient), 0, 0);
    CHECK_ALL(gradient, 0, 37);
}

/* One NaN or +inf anywhere, or nothing but −inf: the loss and the whole gradient are NaN, so that
 * whoever sums them sees it. −inf beside a finite number is a class of probability 0. */
static void rows_that_are_not_finite(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    float logits[37], gradient[37];
    const float spoilers[] = {NAN, INFINITY};
    for (size_t n = 0; n < COUNT(spoilers); n++)
        for (int place = 0; place < 37; place++) {
            for (int c = 0; c < 37; c++)
                logits[c] = (float)c;
            logits[place] = spoilers[n];
            test_context("%g at %d", (double)spoilers[n], place);
            CHECK(isnan(kernels->cross_entropy(logits, 37, 5, 1, gradient)));
            if (isnan(spoilers[n]))
                CHECK_ALL(gradient, NAN, 37);
            else
                CHECK(isnan(gradient[place]));
        }
    for (int c = 0; c < 37; c++)
        logits[c] = -INFINITY;
    CHECK(isnan(kernels->cross_entropy(logits, 37, 5, 1, gradient)));
    CHECK_ALL(gradient, NAN, 37);

    logits[5] = -1e4f;
    CHECK_WITHIN(kernels->cross_entropy(logits, 37, 5, 1, gradient), 0, 0);
    CHECK_ALL(gradient, 0, 37);
    CHECK(kernels->cross_entropy(logits, 37, 4, 1, gradient) == (double)INFINITY);
    CHECK_WITHIN((double)gradient[4], -1, 0);
    CHECK_WITHIN((double)gradient[5], 1, 0);
}

int main(void)
{
    isa_each("rows of all sizes", rows_of_all_sizes);
    isa_each("rows that are certain", certain_rows);
    isa_each("rows with NaN and infinities", rows_that_are_not_finite);
    return test_finish();
}
