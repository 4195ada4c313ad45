/* Little-endian numbers of model files, of any alignment. */
#ifndef ATTN_FORMAT_STORED_NUMBER_H
#define ATTN_FORMAT_STORED_NUMBER_H

#include <stdint.h>
#include <string.h>

static inline uint16_t stored_u16(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | (unsigned)bytes[1] << 8);
}

static inline uint32_t stored_u32(const unsigned char *bytes)
{
    return stored_u16(bytes) | (uint32_t)stored_u16(bytes + 2) << 16;
}

static inline uint64_t stored_u64(const unsigned char *bytes)
{
    return stored_u32(bytes) | (uint64_t)stored_u32(bytes + 4) << 32;
}

static inline float stored_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float stored_float(const unsigned char *bytes)
{
    return stored_float_of_bits(stored_u32(bytes));
}

static inline double stored_double(const unsigned char *bytes)
{
    uint64_t bits = stored_u64(bytes);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The upper half of a float. */
static inline float stored_bfloat(const unsigned char *bytes)
{
    return stored_float_of_bits((uint32_t)stored_u16(bytes) << 16);
}

/* IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. Exact, NaN payloads included. */
static inline float stored_half(const unsigned char *bytes)
{
    enum { EXPONENT_ONES = 0x1f, BIAS_DIFFERENCE = 127 - 15 };
    uint16_t half = stored_u16(bytes);
    uint32_t sign = (uint32_t)(half >> 15) << 31;
    uint32_t exponent = half >> 10 & EXPONENT_ONES;
    uint32_t fraction = half & 0x3ffU;
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24F; /* zero or a denormal, normal as a float */
        return sign ? -magnitude : magnitude;
    }
    exponent = exponent == EXPONENT_ONES ? 0xff : exponent + BIAS_DIFFERENCE;
    return stored_float_of_bits(sign | exponent << 23 | fraction << 13);
}

#endif
