#include "kernel/storage_scalar.h"

#include <string.h>

/* Bits of f32: 1 sign, 8 exponent (bias 127), 23 fraction. Of f16: 1, 5 (bias 15), 10. */
enum {
    F32_QUIET = 0x400000,
    F32_INFINITY = 0x7f800000,
    F16_INFINITY = 0x7c00,
    F16_QUIET = 0x200,
    FRACTION_SHIFT = 23 - 10,
    BIAS_DIFFERENCE = 127 - 15
};

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

static float widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0x1f) {
        uint32_t quiet = fraction ? F32_QUIET : 0;
        return float_of(sign | F32_INFINITY | quiet | fraction << FRACTION_SHIFT);
    }
    if (exponent == 0) {
        /* A subnormal number of f16, fraction·2⁻²⁴, is a normal one of f32, or 0. */
        float magnitude = (float)fraction * 0x1p-24f;
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | (exponent + BIAS_DIFFERENCE) << 23 | fraction << FRACTION_SHIFT);
}

/* x / 2^shift, rounded to nearest even; 1 ≤ shift ≤ 31, and x leaves room for the addition. */
static uint32_t shift_to_nearest(uint32_t x, uint32_t shift)
{
    uint32_t below_half = (UINT32_C(1) << (shift - 1)) - 1;
    return (x + below_half + (x >> shift & 1)) >> shift;
}

static uint16_t narrow_f16(float x)
{
    const uint32_t overflow = UINT32_C(0x477ff000);        /* 65520, half way to 2¹⁶ */
    const uint32_t smallest_normal = UINT32_C(0x38800000); /* 2⁻¹⁴ */
    uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffff, half;
    if (magnitude > F32_INFINITY) {
        half = F16_INFINITY | F16_QUIET | (magnitude >> FRACTION_SHIFT & 0x3ff);
    } else if (magnitude >= overflow) {
        half = F16_INFINITY;
    } else if (magnitude >= smallest_normal) {
        half = shift_to_nearest(magnitude - ((uint32_t)BIAS_DIFFERENCE << 23), FRACTION_SHIFT);
    } else {
        /* In units of 2⁻²⁴. Below 2⁻²⁵ all is 0; the shift stays in a word. */
        uint32_t exponent = magnitude >> 23, shift = 126 - exponent;
        uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
        half = shift > 24 ? 0 : shift_to_nearest(significand, shift);
    }
    return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)half;
}

static uint16_t narrow_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > F32_INFINITY)
        return (uint16_t)((bits | F32_QUIET) >> 16);
    return (uint16_t)shift_to_nearest(bits, 16);
}

void attn_widen_scalar(enum attn_storage from, const void *x, float scale, int64_t count, float *y)
{
    const uint16_t *halves = x;
    const int8_t *bytes = x;
    switch (from) {
    case ATTN_STORAGE_F16:
        for (int64_t i = 0; i < count; i++)
            y[i] = widen_f16(halves[i]);
        return;
    case ATTN_STORAGE_BF16:
        for (int64_t i = 0; i < count; i++)
            y[i] = float_of((uint32_t)halves[i] << 16);
        return;
    case ATTN_STORAGE_I8:
        for (int64_t i = 0; i < count; i++)
            y[i] = (float)bytes[i] * scale;
        return;
    default:
        if (count > 0)
            memcpy(y, x, (size_t)count * sizeof *y);
        return;
    }
}

void attn_narrow_scalar(enum attn_storage to, const float *x, int64_t count, void *y)
{
    uint16_t *halves = y;
    switch (to) {
    case ATTN_STORAGE_F16:
        for (int64_t i = 0; i < count; i++)
            halves[i] = narrow_f16(x[i]);
        return;
    case ATTN_STORAGE_BF16:
        for (int64_t i = 0; i < count; i++)
            halves[i] = narrow_bf16(x[i]);
        return;
    default:
        if (count > 0)
            memcpy(y, x, (size_t)count * sizeof *x);
        return;
    }
}
