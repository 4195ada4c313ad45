#include "harness/element.h"

#include <math.h>
#include <string.h>

#include "harness/guarded.h"

/* A binary format: its precision in bits, the least exponent of frexp's that has all of them, and
 * the exponent of the first number that is too large. */
struct format {
    int precision, least_exponent, overflow_exponent;
};

static const struct format f16_format = {11, -13, 17};
static const struct format bf16_format = {8, -125, 129};

/* Every step but rint is exact. */
static double round_to(const struct format *format, double value)
{
    if (value == 0 || !isfinite(value))
        return value;
    int exponent;
    frexp(value, &exponent);
    int step =
        (exponent < format->least_exponent ? format->least_exponent : exponent) - format->precision;
    double rounded = ldexp(rint(ldexp(value, -step)), step);
    if (fabs(rounded) >= ldexp(1, format->overflow_exponent - 1))
        return copysign(INFINITY, value);
    return rounded;
}

static uint16_t f16_bits(double value)
{
    double size = fabs(round_to(&f16_format, value));
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    if (isinf(size))
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x1p-14)
        return (uint16_t)(sign | (int)(size * 0x1p24));
    int exponent;
    double fraction = frexp(size, &exponent); /* 0.5 ≤ fraction < 1 */
    return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)(fraction * 0x1p11) - 1024));
}

static double f16_number(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0 ? fraction * 0x1p-24 : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    return bits & 0x8000 ? -size : size;
}

static uint16_t bf16_bits(double value)
{
    float stored = (float)round_to(&bf16_format, value);
    uint32_t bits;
    memcpy(&bits, &stored, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double bf16_number(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

static double clamp_to_byte(double value)
{
    return fmin(fmax(rint(value), -128), 127);
}

size_t element_size(attn_type type)
{
    switch (type) {
    case ATTN_F64:
        return sizeof(double);
    case ATTN_F32:
        return sizeof(float);
    case ATTN_I32:
        return sizeof(int32_t);
    case ATTN_F16:
    case ATTN_BF16:
        return sizeof(uint16_t);
    default:
        return 1;
    }
}

double element_get(attn_type type, const void *data, int64_t index)
{
    switch (type) {
    case ATTN_F64:
        return ((const double *)data)[index];
    case ATTN_F32:
        return ((const float *)data)[index];
    case ATTN_F16:
        return f16_number(((const uint16_t *)data)[index]);
    case ATTN_BF16:
        return bf16_number(((const uint16_t *)data)[index]);
    case ATTN_I8:
        return ((const signed char *)data)[index];
    case ATTN_I32:
        return ((const int32_t *)data)[index];
    default:
        return ((const unsigned char *)data)[index] != 0;
    }
}

void element_set(attn_type type, void *data, int64_t index, double value)
{
    switch (type) {
    case ATTN_F64:
        ((double *)data)[index] = value;
        break;
    case ATTN_F32:
        ((float *)data)[index] = (float)value;
        break;
    case ATTN_F16:
        ((uint16_t *)data)[index] = f16_bits(value);
        break;
    case ATTN_BF16:
        ((uint16_t *)data)[index] = bf16_bits(value);
        break;
    case ATTN_I8:
        ((signed char *)data)[index] = (signed char)clamp_to_byte(value);
        break;
    default:
        ((unsigned char *)data)[index] = value != 0;
    }
}

double element_round(attn_type type, double value)
{
    double stored;
    element_set(type, &stored, 0, value);
    return element_get(type, &stored, 0);
}

double element_roundoff(attn_type type)
{
    switch (type) {
    case ATTN_F64:
        return 0x1p-53;
    case ATTN_F32:
        return 0x1p-24;
    case ATTN_F16:
        return 0x1p-11;
    case ATTN_BF16:
        return 0x1p-8;
    default:
        return 0;
    }
}

double element_smallest_step(attn_type type)
{
    switch (type) {
    case ATTN_F64:
        return 0x1p-1074;
    case ATTN_F32:
        return 0x1p-149;
    case ATTN_F16:
        return 0x1p-24;
    case ATTN_BF16:
        return 0x1p-133;
    default:
        return 0;
    }
}

void element_fill_unwritten(attn_type type, void *data, size_t count)
{
    const uint64_t f64 = UINT64_C(0x7ff8c0dec0dec0de);
    const uint32_t f32 = GUARDED_NAN_BITS;
    const uint16_t f16 = 0x7fde, bf16 = 0x7fcd;
    const uint32_t bytes = UINT32_C(0xA5A5A5A5);
    const void *pattern = &bytes;
    if (type == ATTN_F64)
        pattern = &f64;
    else if (type == ATTN_F32)
        pattern = &f32;
    else if (type == ATTN_F16)
        pattern = &f16;
    else if (type == ATTN_BF16)
        pattern = &bf16;
    size_t size = element_size(type);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)data + i * size, pattern, size);
}
