/* widen and narrow: every stored number, every rounding boundary, any count at any place. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/element.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/kernel.h"

enum { HALVES = 1 << 16, F16_INFINITY = 0x7c00, BF16_INFINITY = 0x7f80 };

static const struct storage {
    enum attn_storage storage;
    attn_type type;
    uint16_t infinity; /* of the 16-bit ones: its bits, which are those of NaN with fraction 0 */
    const char *name;
} storages[] = {
    {ATTN_STORAGE_F32, ATTN_F32, 0, "f32"},
    {ATTN_STORAGE_F16, ATTN_F16, F16_INFINITY, "f16"},
    {ATTN_STORAGE_BF16, ATTN_BF16, BF16_INFINITY, "bf16"},
    {ATTN_STORAGE_I8, ATTN_I8, 0, "i8"},
};

static const struct storage *const halves[] = {&storages[1], &storages[2]};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool is_nan_half(const struct storage *storage, uint32_t half)
{
    return (half & 0x7fff) > storage->infinity;
}

static void widen_all_halves(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    uint16_t *stored = guarded_bytes(HALVES * sizeof *stored, sizeof *stored, GUARD_BEHIND);
    float *wide = guarded_floats(HALVES, GUARD_BEHIND);
    for (uint32_t half = 0; half < HALVES; half++)
        stored[half] = (uint16_t)half;
    for (size_t n = 0; n < COUNT(halves); n++) {
        kernels->widen(halves[n]->storage, stored, NAN, HALVES, wide);
        test_context("%s", halves[n]->name);
        int wrong = 0;
        for (uint32_t half = 0; half < HALVES; half++) {
            double expected = element_get(halves[n]->type, stored, half);
            bool sign_kept = (signbit(wide[half]) != 0) == (half >> 15 == 1);
            bool right = is_nan_half(halves[n], half) ? isnan(wide[half]) != 0
                                                      : (double)wide[half] == expected;
            wrong += !(right && sign_kept);
        }
        CHECK_EQUAL(wrong, 0);
    }
}

static void widen_all_bytes(attn_isa isa)
{
    const float scales[] = {1, 0.1f, -3e-5f, 0x1p-140f, 1e38f, 0, INFINITY, NAN};
    int8_t *stored = guarded_bytes(256, 1, GUARD_BEHIND);
    float *wide = guarded_floats(256, GUARD_BEHIND);
    float *expected = guarded_floats(256, GUARD_BEHIND);
    for (int value = -128; value < 128; value++)
        stored[value + 128] = (int8_t)value;
    for (size_t n = 0; n < COUNT(scales); n++) {
        attn_kernels_for(isa)->widen(ATTN_STORAGE_I8, stored, scales[n], 256, wide);
        for (int value = -128; value < 128; value++)
            expected[value + 128] = (float)value * scales[n];
        test_context("scale %g", (double)scales[n]);
        for (int i = 0; i < 256; i++)
            CHECK(wide[i] == expected[i] || (isnan(wide[i]) && isnan(expected[i])));
    }
}

static void widened_halves_come_back(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    uint16_t *stored = guarded_bytes(HALVES * sizeof *stored, sizeof *stored, GUARD_BEHIND);
    uint16_t *back = guarded_bytes(HALVES * sizeof *back, sizeof *back, GUARD_BEHIND);
    float *wide = guarded_floats(HALVES, GUARD_BEHIND);
    for (uint32_t half = 0; half < HALVES; half++)
        stored[half] = (uint16_t)half;
    for (size_t n = 0; n < COUNT(halves); n++) {
        kernels->widen(halves[n]->storage, stored, 1, HALVES, wide);
        kernels->narrow(halves[n]->storage, wide, HALVES, back);
        test_context("%s", halves[n]->name);
        int wrong = 0;
        for (uint32_t half = 0; half < HALVES; half++) {
            uint32_t quiet = is_nan_half(halves[n], half)
                                 ? (halves[n]->infinity >> 1 & ~(uint32_t)halves[n]->infinity)
                                 : 0;
            wrong += back[half] != (half | quiet);
        }
        CHECK_EQUAL(wrong, 0);
    }
}

/* What `x` must be stored as, by way of doubles. */
static uint16_t rounded_half(const struct storage *storage, float x)
{
    uint16_t half;
    element_set(storage->type, &half, 0, (double)x);
    return half;
}

static void check_narrow(const struct attn_kernels *kernels, const struct storage *storage,
                         const float *x, size_t count)
{
    uint16_t *stored = guarded_bytes(count * sizeof *stored, sizeof *stored, GUARD_BEHIND);
    kernels->narrow(storage->storage, x, (int64_t)count, stored);
    for (size_t i = 0; i < count; i++)
        if (stored[i] != rounded_half(storage, x[i]))
            test_fail(__FILE__, __LINE__, "%a is stored in %s as %04x, expected %04x", (double)x[i],
                      storage->name, stored[i], rounded_half(storage, x[i]));
}

/* Each number, the middle between it and the next one, and the floats beside that middle. Behind
 * the largest number the middle is where infinity begins. */
static void narrow_at_every_boundary(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    enum { CASES = 4 };
    for (size_t n = 0; n < COUNT(halves); n++) {
        size_t count = 0, numbers = halves[n]->infinity;
        float *x = guarded_floats(2 * CASES * numbers, GUARD_BEHIND);
        for (uint16_t half = 0; half < halves[n]->infinity; half++) {
            double low = element_get(halves[n]->type, &half, 0);
            uint16_t above = (uint16_t)(half + 1);
            double high = above == halves[n]->infinity
                              ? ldexp(1, halves[n]->type == ATTN_F16 ? 16 : 128)
                              : element_get(halves[n]->type, &above, 0);
            float middle = (float)((low + high) / 2);
            const float cases[CASES] = {(float)low, middle, nextafterf(middle, 0),
                                        nextafterf(middle, INFINITY)};
            for (int i = 0; i < CASES; i++, count += 2) {
                x[count] = cases[i];
                x[count + 1] = -cases[i];
            }
        }
        check_narrow(kernels, halves[n], x, count);
        guarded_release_all();
    }
}

static void narrow_at_the_ends(attn_isa isa)
{
    const float values[] = {0,         0x1p-149f, 0x1p-126f, 0x1.fffffep-26f, 0x1p-25f,
                            65519.99f, 65520,     0x1p17f,   0x1.fffffep127f, INFINITY};
    float x[2 * COUNT(values)];
    for (size_t i = 0; i < COUNT(values); i++) {
        x[2 * i] = values[i];
        x[2 * i + 1] = -values[i];
    }
    for (size_t n = 0; n < COUNT(halves); n++)
        check_narrow(attn_kernels_for(isa), halves[n], x, COUNT(x));
}

static void narrow_random_bits(attn_isa isa)
{
    enum { NUMBERS = 100000 };
    struct random_source source = {1};
    float *x = guarded_floats(NUMBERS, GUARD_BEHIND);
    for (size_t i = 0; i < NUMBERS; i++) {
        x[i] = float_of((uint32_t)random_bits(&source));
        if (isnan(x[i]))
            x[i] = 0;
    }
    for (size_t n = 0; n < COUNT(halves); n++)
        check_narrow(attn_kernels_for(isa), halves[n], x, NUMBERS);
}

/* A fraction of which only one bit is set: the lowest ones would be rounded away. */
static void narrow_nan(attn_isa isa)
{
    enum { FRACTION_BITS = 23 };
    float x[2 * FRACTION_BITS];
    for (int bit = 0; bit < FRACTION_BITS; bit++) {
        x[2 * bit] = float_of(UINT32_C(0x7f800000) | UINT32_C(1) << bit);
        x[2 * bit + 1] = float_of(UINT32_C(0xff800000) | UINT32_C(1) << bit);
    }
    for (size_t n = 0; n < COUNT(halves); n++) {
        uint16_t stored[COUNT(x)];
        attn_kernels_for(isa)->narrow(halves[n]->storage, x, COUNT(x), stored);
        for (size_t i = 0; i < COUNT(x); i++) {
            test_context("%s, NaN %08x becomes %04x", halves[n]->name, (unsigned)bits_of(x[i]),
                         (unsigned)stored[i]);
            CHECK(is_nan_half(halves[n], stored[i]));
            CHECK_EQUAL(stored[i] >> 15, i % 2);
        }
    }
}

static void f32_is_copied(attn_isa isa)
{
    const uint32_t bits[] = {0, 0x80000000, 1, 0x7f800000, 0x7f800001, 0xffc12345, 0x3f800000};
    float x[COUNT(bits)];
    memcpy(x, bits, sizeof x);
    float *wide = guarded_floats(COUNT(x), GUARD_BEHIND);
    float *stored = guarded_floats(COUNT(x), GUARD_BEHIND);
    attn_kernels_for(isa)->widen(ATTN_STORAGE_F32, x, NAN, COUNT(x), wide);
    attn_kernels_for(isa)->narrow(ATTN_STORAGE_F32, x, COUNT(x), stored);
    CHECK_SAME_BITS(wide, x, COUNT(x));
    CHECK_SAME_BITS(stored, x, COUNT(x));
}

/* `count` elements with `shift` elements between them and the guard page, both ways. An element
 * comes out as it does alone. */
static void check_place(const struct attn_kernels *kernels, const struct storage *storage,
                        size_t count, size_t shift, enum guard_side side)
{
    struct random_source source = {count};
    size_t size = element_size(storage->type), before = side == GUARD_BEFORE ? shift : 0;
    char *stored = guarded_bytes((count + shift) * size, size, side);
    float *wide = guarded_floats(count + shift, side);
    stored += before * size;
    wide += before;
    for (size_t i = 0; i < count; i++)
        element_set(storage->type, stored, (int64_t)i, (double)random_float(&source, -100, 100));

    kernels->widen(storage->storage, stored, 0.3f, (int64_t)count, wide);
    for (size_t i = 0; i < count; i++) {
        float alone;
        kernels->widen(storage->storage, stored + i * size, 0.3f, 1, &alone);
        CHECK_EQUAL(bits_of(wide[i]), bits_of(alone));
        double scale = storage->type == ATTN_I8 ? (double)0.3f : 1.0;
        double expected = scale * element_get(storage->type, stored, (int64_t)i);
        CHECK_WITHIN(alone, expected, 1e-6 * fabs(expected));
    }
    if (storage->type == ATTN_I8)
        return;
    char *back = (char *)guarded_bytes((count + shift) * size, size, side) + before * size;
    kernels->narrow(storage->storage, wide, (int64_t)count, back);
    CHECK(memcmp(back, stored, count * size) == 0);
}

static void any_count_at_any_place(attn_isa isa)
{
    enum { MOST = 3 * ATTN_MAX_LANES / 2 + 2 };
    for (size_t n = 0; n < COUNT(storages); n++)
        for (size_t count = 0; count <= MOST; count++)
            for (size_t shift = 0; shift < 2; shift++)
                for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++) {
                    test_context("%s, %zu elements, shifted by %zu", storages[n].name, count,
                                 shift);
                    check_place(attn_kernels_for(isa), &storages[n], count, shift, side);
                    guarded_release_all();
                }
}

/* No element: pointers may be anything. */
static void nothing_is_touched(attn_isa isa)
{
    for (size_t n = 0; n < COUNT(storages); n++) {
        attn_kernels_for(isa)->widen(storages[n].storage, NULL, 1, 0, NULL);
        if (storages[n].type != ATTN_I8)
            attn_kernels_for(isa)->narrow(storages[n].storage, NULL, 0, NULL);
    }
}

int main(void)
{
    isa_each("widen: all numbers of f16 and bf16", widen_all_halves);
    isa_each("widen: all bytes, many scales", widen_all_bytes);
    isa_each("widened 16-bit numbers come back", widened_halves_come_back);
    isa_each("narrow: at every boundary between two numbers", narrow_at_every_boundary);
    isa_each("narrow: tiny, huge and infinite", narrow_at_the_ends);
    isa_each("narrow: random bits", narrow_random_bits);
    isa_each("narrow: NaN stays NaN, with its sign", narrow_nan);
    isa_each("f32 is copied bit by bit", f32_is_copied);
    isa_each("any count at any place", any_count_at_any_place);
    isa_each("no element at all", nothing_is_touched);
    return test_finish();
}
