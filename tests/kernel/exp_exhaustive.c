/* exp of every instruction set over all floats of [−87.33, 0], as it reaches a softmax: by softmax
 * and weights of kernel/kernel.h and by softmax of kernel/decode_kernels.h. Takes a minute or more
 * an instruction set: run by `make check-exp`, not by `make check`. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/guarded.h"
#include "kernel/decode_kernels.h"
#include "panel.h"

static const double allowed_ulps = 2;
static const float smallest_argument = -87.33f;

/* The kernels' ways to exp(x); each turns x[count] into its exponentials. */
struct bench {
    const struct attn_kernels *kernels;
    size_t count;             /* ATTN_KEY_BLOCK · lanes */
    float *zeros, *ones;      /* [lanes] */
    float *l, *l_rest, *keys; /* [lanes], [lanes], [ATTN_DECODE_BLOCK] */
};

static void by_softmax(const struct bench *bench, float *x)
{
    bench->kernels->softmax(x, 2 * bench->kernels->vector_lanes, ATTN_KEY_BLOCK, bench->zeros,
                            bench->zeros, bench->l, bench->l_rest, NULL, 0);
}

static void by_weights(const struct bench *bench, float *x)
{
    bench->kernels->weights(x, 2 * bench->kernels->vector_lanes, ATTN_KEY_BLOCK, bench->zeros,
                            bench->ones);
}

/* A first key of 0 holds the maximum at 0. */
static void by_decode(const struct bench *bench, float *x)
{
    enum { KEYS = ATTN_DECODE_BLOCK - 1 };
    for (size_t first = 0; first < bench->count; first += KEYS) {
        size_t count = bench->count - first < KEYS ? bench->count - first : KEYS;
        float m = -INFINITY, l = 0;
        bench->keys[0] = 0;
        memcpy(bench->keys + 1, x + first, count * sizeof *x);
        bench->kernels->decode->softmax(bench->keys, 1, (int64_t)count + 1, &m, &l, NULL, 0);
        memcpy(x + first, bench->keys + 1, count * sizeof *x);
    }
}

static void (*const ways[])(const struct bench *bench, float *x) = {by_softmax, by_weights,
                                                                    by_decode};
static const char *const way_names[] = {"softmax", "weights", "decode's softmax"};
enum { WAYS = sizeof ways / sizeof ways[0] };

static struct bench make_bench(const struct attn_kernels *kernels)
{
    size_t lanes = 2 * (size_t)kernels->vector_lanes;
    return (struct bench){.kernels = kernels,
                          .count = ATTN_KEY_BLOCK * lanes,
                          .zeros = filled_panel(lanes, 0),
                          .ones = filled_panel(lanes, 1),
                          .l = filled_panel(lanes, 0),
                          .l_rest = filled_panel(lanes, 0),
                          .keys = guarded_panel(ATTN_DECODE_BLOCK, GUARD_BEHIND)};
}

static bool has_way(const struct bench *bench, int way)
{
    return ways[way] != by_decode || bench->kernels->decode;
}

/* Negative floats from `bits` on, `step` apart. */
static void fill_arguments(float *x, size_t count, uint32_t bits, uint32_t step)
{
    for (size_t i = 0; i < count; i++, bits += step)
        memcpy(&x[i], &bits, sizeof bits);
}

/* A unit in the last place of the float nearest to `expected`, a normal one: a power of two of its
 * exponent's bits. compare_ulps is the same and slower. */
static double ulp_of(double expected)
{
    uint64_t bits;
    memcpy(&bits, &expected, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52;
    memcpy(&expected, &bits, sizeof bits);
    return expected * 0x1p-23;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void all_arguments_of_a_softmax(const struct attn_kernels *kernels)
{
    const struct bench bench = make_bench(kernels);
    float *x = guarded_panel(bench.count, GUARD_BEHIND),
          *y = guarded_panel(bench.count, GUARD_BEHIND);
    double *expected = guarded_doubles(bench.count), *inverse_ulp = guarded_doubles(bench.count);
    double worst[WAYS] = {0};
    float worst_argument[WAYS] = {0};
    const uint32_t last = bits_of(smallest_argument);
    for (uint64_t bits = bits_of(-0.0f); bits <= last; bits += bench.count) {
        /* The last block goes a little further, where the bound does not hold. */
        size_t count = last - bits < bench.count ? (size_t)(last - bits) + 1 : bench.count;
        fill_arguments(x, bench.count, (uint32_t)bits, 1);
        for (size_t i = 0; i < count; i++) {
            expected[i] = exp(x[i]);
            inverse_ulp[i] = 1 / ulp_of(expected[i]);
        }
        for (int way = 0; way < WAYS; way++) {
            if (!has_way(&bench, way))
                continue;
            memcpy(y, x, bench.count * sizeof *y);
            ways[way](&bench, y);
            for (size_t i = 0; i < count; i++) {
                double ulps = fabs(y[i] - expected[i]) * inverse_ulp[i];
                if (!(ulps <= worst[way])) {
                    worst[way] = ulps;
                    worst_argument[way] = x[i];
                }
            }
        }
    }
    for (int way = 0; way < WAYS; way++) {
        if (!has_way(&bench, way))
            continue;
        printf("# %s, %s: at most %.4f ULP, at exp(%.9g)\n", attn_isa_name(kernels->isa),
               way_names[way], worst[way], (double)worst_argument[way]);
        if (!(worst[way] <= allowed_ulps))
            test_fail(__FILE__, __LINE__, "%s: %.4f ULP at exp(%.9g)", way_names[way], worst[way],
                      (double)worst_argument[way]);
    }
}

/* There a result may be anything between 0 and what it is at the border. All floats down to where
 * exp is less than half of the smallest subnormal, and then some. */
static void below_the_normal_numbers(const struct attn_kernels *kernels)
{
    const struct bench bench = make_bench(kernels);
    float *x = guarded_panel(bench.count, GUARD_BEHIND),
          *y = guarded_panel(bench.count, GUARD_BEHIND);
    const uint32_t far = bits_of(-105.0f), lowest = bits_of(-3.4028235e38f);
    const uint32_t wide_step = 4099;
    const double border = exp(smallest_argument);
    uint32_t step = 1;
    for (uint64_t bits = bits_of(smallest_argument) + 1; bits + bench.count * step < lowest;
         bits += bench.count * step) {
        if (bits > far)
            step = wide_step;
        fill_arguments(x, bench.count, (uint32_t)bits, step);
        for (int way = 0; way < WAYS; way++) {
            if (!has_way(&bench, way))
                continue;
            memcpy(y, x, bench.count * sizeof *y);
            ways[way](&bench, y);
            for (size_t i = 0; i < bench.count; i++)
                if (!(y[i] >= 0 && fabs(y[i] - exp(x[i])) <= border))
                    test_fail(__FILE__, __LINE__, "%s: exp(%.9g) is %.9g", way_names[way],
                              (double)x[i], (double)y[i]);
        }
    }
}

int main(void)
{
    kernels_each("exp is within 2 ULP for all floats of [-87.33, 0]", all_arguments_of_a_softmax);
    kernels_each("exp below the normal numbers", below_the_normal_numbers);
    return test_finish();
}
