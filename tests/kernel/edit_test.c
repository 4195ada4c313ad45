/* What changes scores between Q·Kᵀ and the softmax: soft_cap, add_bias, subtract_distance, exclude
 * and exclusion_words. All but soft_cap are exact. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/kernel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t key_counts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 95, 96};

/* How many key counts, or rows, a long loop goes on by. */
static int step(void)
{
    return test_is_reduced() ? 3 : 1;
}

static float *copy_of(const float *panel, size_t count, enum guard_side side)
{
    float *copy = guarded_panel(count, side);
    memcpy(copy, panel, count * sizeof *copy);
    return copy;
}

/* Scores, some of which are not finite. */
static float *make_scores(struct random_source *source, size_t count, enum guard_side side)
{
    const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    float *s = guarded_panel(count, side);
    for (size_t i = 0; i < count; i++)
        s[i] = random_integer(source, 0, 9) == 0
                   ? special[random_integer(source, 0, COUNT(special) - 1)]
                   : random_float(source, -50, 50);
    return s;
}

/* The same bits, but that a NaN may be any. */
static void check_scores(const float *actual, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(isnan(expected[i]) && isnan(actual[i])))
            CHECK_SAME_BITS(&actual[i], &expected[i], 1);
}

static float any_float(struct random_source *source)
{
    uint32_t bits = (uint32_t)random_bits(source);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Numbers of every size, around where tanh bends, and around the seam of the two formulas. */
static float sample(struct random_source *source, size_t i, float cap)
{
    switch (i % 3) {
    case 0: {
        float x = any_float(source);
        return isfinite(x) ? x : 0.0f;
    }
    case 1:
        return (float)((double)cap * (double)random_float(source, -12, 12));
    default:
        return (float)((double)cap * (double)random_float(source, 0.6f, 0.65f));
    }
}

static void soft_cap_is_within_four_ulps(attn_isa isa)
{
    enum { SAMPLES = 3 * 4096 };
    const float caps[] = {1e-45f, 1e-38f, 1e-20f, 0.01f, 1,     3,     5,
                          14.02f, 30,     56,     1e4f,  1e20f, 1e38f, 3.4028235e38f};
    struct random_source source = {1};
    double worst = 0;
    for (size_t n = 0; n < COUNT(caps); n++) {
        float *x = guarded_panel(SAMPLES, GUARD_BEHIND);
        for (size_t i = 0; i < SAMPLES; i++)
            x[i] = sample(&source, i, caps[n]);
        float *y = copy_of(x, SAMPLES, GUARD_BEHIND);
        attn_kernels_for(isa)->soft_cap(y, SAMPLES, caps[n]);
        for (size_t i = 0; i < SAMPLES; i++) {
            double ulps = compare_ulps(y[i], caps[n] * tanh((double)x[i] / caps[n]));
            test_context("cap %g, x = %.9g", (double)caps[n], (double)x[i]);
            CHECK_WITHIN(ulps, 0, 4);
            CHECK(fabsf(y[i]) <= caps[n]);
            worst = fmax(worst, ulps);
        }
        guarded_release_all();
    }
    test_context("worst of all");
    CHECK(worst > 0.25);
}

static void soft_cap_at_the_ends(attn_isa isa)
{
    const float cap = 30, tiny = 0x1p-149f, largest = 3.4028235e38f;
    const float x[] = {0, tiny, -tiny, 1e-38f, INFINITY, largest, -largest, NAN, -INFINITY, 1e-20f};
    const float expected[] = {0, tiny, -tiny, 1e-38f, cap, cap, -cap, NAN, -cap, 1e-20f};
    float *y = guarded_panel(COUNT(x), GUARD_BEHIND);
    memcpy(y, x, sizeof x);
    attn_kernels_for(isa)->soft_cap(y, COUNT(x), cap);
    check_scores(y, expected, COUNT(x));

    struct random_source source = {2};
    float *nans = guarded_panel(512, GUARD_BEHIND);
    for (size_t i = 0; i < 512; i++) {
        uint32_t bits = UINT32_C(0x7fc00000) | (uint32_t)random_bits(&source);
        memcpy(&nans[i], &bits, sizeof bits);
    }
    attn_kernels_for(isa)->soft_cap(nans, 512, cap);
    CHECK_ALL(nans, NAN, 512);
}

/* Any count, nothing else touched, and bits that do not depend on the place. */
static void soft_cap_of_any_count(attn_isa isa)
{
    struct random_source source = {3};
    enum { MOST = 3 * ATTN_MAX_LANES + 1 };
    float x[MOST], expected[MOST];
    for (size_t i = 0; i < MOST; i++) {
        x[i] = sample(&source, i, 7);
        float *one = copy_of(&x[i], 1, GUARD_BEHIND);
        attn_kernels_for(isa)->soft_cap(one, 1, 7);
        expected[i] = *one;
    }
    guarded_release_all();
    for (size_t count = 0; count <= MOST; count++)
        for (size_t side = 0; side < COUNT(sides); side++) {
            float *y = copy_of(x, count, sides[side]);
            attn_kernels_for(isa)->soft_cap(y, (int64_t)count, 7);
            test_context("%zu numbers", count);
            CHECK_SAME_BITS(y, expected, count);
            guarded_release_all();
        }
}

/* A way in which a bias of rows × keys may lie in memory. */
struct bias_view {
    const char *name;
    int64_t query_stride, key_stride;
};

static void check_bias(const struct attn_kernels *kernels, int lanes, int64_t rows, int64_t keys,
                       const struct bias_view *view, enum guard_side side)
{
    struct random_source source = {(uint64_t)(rows * 100 + keys)};
    int64_t last = keys > 0 ? keys - 1 : 0, row = rows > 0 ? rows - 1 : 0;
    int64_t across = row * view->query_stride, along = last * view->key_stride;
    int64_t lowest = (across < 0 ? across : 0) + (along < 0 ? along : 0);
    size_t span = rows * keys > 0 ? (size_t)(llabs(across) + llabs(along) + 1) : 0;
    float *memory = guarded_floats(span, side);
    for (size_t i = 0; i < span; i++)
        memory[i] = random_integer(&source, 0, 5) == 0 ? -INFINITY : random_float(&source, -9, 9);
    const float *bias = memory - (rows * keys > 0 ? lowest : 0);

    size_t count = (size_t)(keys * lanes);
    float *s = make_scores(&source, count, side), *expected = copy_of(s, count, side);
    for (int64_t j = 0; j < keys; j++)
        for (int64_t n = 0; n < rows; n++) {
            float b = bias[n * view->query_stride + j * view->key_stride];
            float *score = &expected[j * lanes + n];
            *score = b == -INFINITY ? b : *score + b;
        }
    kernels->add_bias(s, lanes, keys, bias, view->query_stride, view->key_stride, rows);
    test_context("%s, %d lanes, %d rows, %d keys", view->name, lanes, (int)rows, (int)keys);
    for (int64_t j = 0; j < keys; j++)
        check_scores(s + j * lanes, expected + j * lanes, (size_t)rows);
    guarded_release_all();
}

static void bias_of_every_layout(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    for (int lanes = kernels->vector_lanes; lanes <= 2 * kernels->vector_lanes;
         lanes += kernels->vector_lanes)
        for (size_t a = 0; a < COUNT(key_counts); a += (size_t)step())
            for (int64_t rows = 0; rows <= lanes; rows += step()) {
                int64_t keys = key_counts[a];
                const struct bias_view views[] = {
                    {"packed", keys, 1},
                    {"misaligned with gaps", keys + 5, 1},
                    {"rows reversed", -keys, 1},
                    {"keys reversed", keys, -1},
                    {"transposed", 1, rows},
                    {"spread", 3 * keys, 3},
                    {"one row for all", 0, 1},
                    {"one key for all", 1, 0},
                    {"one key for all, rows spread", 2, 0},
                    {"one number for all", 0, 0},
                    {"diagonals", 1, 1},
                };
                for (size_t n = 0; n < COUNT(views); n++)
                    check_bias(kernels, lanes, rows, keys, &views[n], sides[(size_t)rows % 2]);
            }
}

static void distances_are_exact(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    const int64_t edge = INT64_C(1) << 24, far = INT64_C(1) << 61;
    const int64_t firsts[] = {0,          5,         -5,        90,           -200,     100000,
                              edge - 300, edge - 60, edge,      edge + 7,     2 * edge, -edge + 300,
                              -edge + 60, -edge,     -edge - 7, 123456789012, far,      -far};
    const float slopes[] = {0, 0.5f, 0.0883883476f, -3, 1e30f};
    struct random_source source = {4};
    for (int lanes = kernels->vector_lanes; lanes <= 2 * kernels->vector_lanes;
         lanes += kernels->vector_lanes)
        for (size_t a = 0; a < COUNT(key_counts); a += (size_t)step()) {
            int64_t keys = key_counts[a];
            for (size_t n = 0; n < COUNT(firsts); n++)
                for (size_t m = 0; m < COUNT(slopes); m++) {
                    size_t count = (size_t)(keys * lanes);
                    float *s = make_scores(&source, count, GUARD_BEHIND);
                    float *expected = copy_of(s, count, GUARD_BEHIND);
                    for (int64_t i = 0; i < keys * lanes; i++) {
                        float penalty = slopes[m] * (float)llabs(firsts[n] + i % lanes - i / lanes);
                        expected[i] = expected[i] - penalty;
                    }
                    kernels->subtract_distance(s, lanes, keys, slopes[m], firsts[n]);
                    test_context("%d lanes, %d keys, slope %g, first %lld", lanes, (int)keys,
                                 (double)slopes[m], (long long)firsts[n]);
                    check_scores(s, expected, count);
                    guarded_release_all();
                }
        }
}

static void exclusion_replaces_any_score(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    struct random_source source = {5};
    for (int lanes = kernels->vector_lanes; lanes <= 2 * kernels->vector_lanes;
         lanes += kernels->vector_lanes)
        for (int64_t keys = 0; keys <= ATTN_KEY_BLOCK; keys += step()) {
            size_t count = (size_t)(keys * lanes), words = (size_t)(ATTN_KEY_WORDS * lanes);
            uint32_t *excluded = guarded_bytes(words * sizeof *excluded, 64, GUARD_BEHIND);
            for (size_t i = 0; i < words; i++)
                excluded[i] = (uint32_t)random_bits(&source);
            float *s = make_scores(&source, count, GUARD_BEHIND);
            float *expected = copy_of(s, count, GUARD_BEHIND);
            for (int64_t j = 0; j < keys; j++)
                for (int64_t n = 0; n < lanes; n++)
                    if (excluded[j / 32 * lanes + n] & UINT32_C(1) << j % 32)
                        expected[j * lanes + n] = -INFINITY;
            kernels->exclude(s, lanes, keys, excluded);
            test_context("%d lanes, %d keys", lanes, (int)keys);
            check_scores(s, expected, count);
            guarded_release_all();
        }
}

static void words_hold_what_is_false(attn_isa isa)
{
    struct random_source source = {6};
    for (int64_t count = 0; count <= ATTN_KEY_BLOCK; count += step())
        for (size_t side = 0; side < COUNT(sides); side++) {
            unsigned char *keep = guarded_bytes((size_t)count, 1, sides[side]);
            for (int64_t t = 0; t < count; t++)
                keep[t] = (unsigned char)(random_integer(&source, 0, 1) == 0
                                              ? 0
                                              : random_integer(&source, 1, 255));
            size_t filled = (size_t)(count + 31) / 32;
            uint32_t *words = guarded_bytes(filled * sizeof *words, 4, sides[side]);
            attn_kernels_for(isa)->exclusion_words(keep, count, words);
            test_context("%d bytes", (int)count);
            for (int64_t t = 0; t < (int64_t)filled * 32; t++)
                CHECK_EQUAL(words[t / 32] >> t % 32 & 1, t < count && keep[t] == 0);
            guarded_release_all();
        }
}

int main(void)
{
    isa_each("soft cap is within 4 ULP", soft_cap_is_within_four_ulps);
    isa_each("soft cap at the ends", soft_cap_at_the_ends);
    isa_each("soft cap of any count", soft_cap_of_any_count);
    isa_each("bias of every layout", bias_of_every_layout);
    isa_each("distances are exact", distances_are_exact);
    isa_each("exclusion replaces any score", exclusion_replaces_any_score);
    isa_each("words hold what is false", words_hold_what_is_false);
    return test_finish();
}
