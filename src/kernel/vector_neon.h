/* The vector vocabulary on AArch64's Advanced SIMD: 4 floats a vector. vector_avx2.h says what each
 * name promises. */
#ifndef ATTN_KERNEL_VECTOR_NEON_H
#define ATTN_KERNEL_VECTOR_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

enum { VECTOR_LANES = 4 };

typedef float32x4_t vector;
typedef uint32x4_t mask;

static inline vector vector_zero(void)
{
    return vdupq_n_f32(0.0f);
}

static inline vector vector_set(float x)
{
    return vdupq_n_f32(x);
}

static inline vector vector_broadcast(const float *x)
{
    return vld1q_dup_f32(x);
}

static inline vector vector_load_aligned(const float *x)
{
    return vld1q_f32(x);
}

static inline void vector_store_aligned(float *x, vector a)
{
    vst1q_f32(x, a);
}

static inline vector vector_load(const float *x)
{
    return vld1q_f32(x);
}

static inline void vector_store(float *x, vector a)
{
    vst1q_f32(x, a);
}

static inline vector vector_load_part(const float *x, int64_t n)
{
    vector a = vdupq_n_f32(0.0f);
    if (n > 0)
        a = vld1q_lane_f32(x, a, 0);
    if (n > 1)
        a = vld1q_lane_f32(x + 1, a, 1);
    if (n > 2)
        a = vld1q_lane_f32(x + 2, a, 2);
    if (n > 3)
        a = vld1q_lane_f32(x + 3, a, 3);
    return a;
}

static inline void vector_store_part(float *x, int64_t n, vector a)
{
    if (n > 0)
        vst1q_lane_f32(x, a, 0);
    if (n > 1)
        vst1q_lane_f32(x + 1, a, 1);
    if (n > 2)
        vst1q_lane_f32(x + 2, a, 2);
    if (n > 3)
        vst1q_lane_f32(x + 3, a, 3);
}

static inline vector vector_add(vector a, vector b)
{
    return vaddq_f32(a, b);
}

static inline vector vector_subtract(vector a, vector b)
{
    return vsubq_f32(a, b);
}

static inline vector vector_multiply(vector a, vector b)
{
    return vmulq_f32(a, b);
}

static inline vector vector_divide(vector a, vector b)
{
    return vdivq_f32(a, b);
}

static inline vector vector_multiply_add(vector a, vector b, vector c)
{
    return vfmaq_f32(c, a, b);
}

static inline vector vector_add_product(vector sum, vector a, vector b)
{
    return vfmaq_f32(sum, a, b);
}

static inline vector vector_negative_multiply_add(vector a, vector b, vector c)
{
    return vfmsq_f32(c, a, b);
}

/* The instruction for a maximum would return NaN for any NaN. */
static inline vector vector_maximum(vector a, vector b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vector vector_absolute(vector a)
{
    return vabsq_f32(a);
}

static inline mask vector_less(vector a, vector b)
{
    return vcltq_f32(a, b);
}

static inline mask vector_equal(vector a, vector b)
{
    return vceqq_f32(a, b);
}

static inline mask mask_and(mask a, mask b)
{
    return vandq_u32(a, b);
}

static inline vector vector_select(mask m, vector a, vector b)
{
    return vbslq_f32(m, a, b);
}

static inline vector vector_clear(mask m, vector a)
{
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), m));
}

static inline uint32_t mask_bits(mask m)
{
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(m, bits));
}

static inline mask mask_from_bits(uint32_t bits)
{
    const uint32x4_t lane = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32(bits), lane);
}

static inline vector vector_power_of_two(vector shifted)
{
    int32x4_t exponent = vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23);
    int32x4_t one = vreinterpretq_s32_f32(vdupq_n_f32(1.0f));
    return vreinterpretq_f32_s32(vaddq_s32(one, exponent));
}

static inline float vector_sum(vector a)
{
    return vaddvq_f32(a);
}

static inline void vector_transpose(vector rows[VECTOR_LANES])
{
    /* Pairs of rows, then pairs of pairs. */
    float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(rows[0], rows[1]));
    float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(rows[0], rows[1]));
    float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(rows[2], rows[3]));
    float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(rows[2], rows[3]));
    rows[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    rows[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    rows[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    rows[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

static inline vector vector_shift_in(vector before, vector a)
{
    return vextq_f32(before, a, VECTOR_LANES - 1);
}

static inline vector vector_load_f16(const uint16_t *x)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x)));
}

static inline vector vector_load_bf16(const uint16_t *x)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(x), 16));
}

static inline vector vector_load_i8(const int8_t *x)
{
    uint32_t four;
    memcpy(&four, x, sizeof four);
    int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}

static inline void vector_store_f16(uint16_t *x, vector a)
{
    vst1_u16(x, vreinterpret_u16_f16(vcvt_f16_f32(a)));
}

static inline void vector_store_bf16(uint16_t *x, vector a)
{
    uint32x4_t bits = vreinterpretq_u32_f32(a);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    vst1_u16(x, vshrn_n_u32(vbslq_u32(vceqq_f32(a, a), rounded, quiet), 16));
}

static inline mask vector_bit(const uint32_t *words, uint32_t bit)
{
    return vtstq_u32(vld1q_u32(words), vdupq_n_u32(bit));
}

static inline uint32_t vector_zero_bytes(const unsigned char *x)
{
    /* A weight a byte, then sums of 2, 4 and 8 neighbours: a byte of the result for every 8. */
    const uint8x16_t weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t low = vandq_u8(vceqzq_u8(vld1q_u8(x)), weight);
    uint8x16_t high = vandq_u8(vceqzq_u8(vld1q_u8(x + 16)), weight);
    uint8x16_t sum = vpaddq_u8(low, high);
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u32(vreinterpretq_u32_u8(sum), 0);
}

static inline vector vector_load_bf16_even(const uint16_t *x)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u16(vld1q_u16(x)), 16));
}

static inline vector vector_load_bf16_odd(const uint16_t *x)
{
    uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(x));
    return vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000)));
}

static inline vector vector_sums(const vector rows[VECTOR_LANES])
{
    return vpaddq_f32(vpaddq_f32(rows[0], rows[1]), vpaddq_f32(rows[2], rows[3]));
}

typedef uint32x4_t word_vector;

static inline word_vector words_set(uint32_t x)
{
    return vdupq_n_u32(x);
}

static inline word_vector words_load_aligned(const uint32_t *x)
{
    return vld1q_u32(x);
}

static inline word_vector words_xor(word_vector a, word_vector b)
{
    return veorq_u32(a, b);
}

static inline word_vector words_multiply_even(word_vector a, word_vector b)
{
    uint32x2_t even_a = vmovn_u64(vreinterpretq_u64_u32(a));
    uint32x2_t even_b = vmovn_u64(vreinterpretq_u64_u32(b));
    return vreinterpretq_u32_u64(vmull_u32(even_a, even_b));
}

static inline word_vector words_odd_to_even(word_vector a)
{
    return vreinterpretq_u32_u64(vshrq_n_u64(vreinterpretq_u64_u32(a), 32));
}

static inline word_vector words_interleave(word_vector even, word_vector odd)
{
    return vtrn1q_u32(even, odd);
}

static inline mask words_less(word_vector a, word_vector b)
{
    return vcltq_u32(a, b);
}

static inline word_vector words_load_bytes(const unsigned char *x)
{
    uint32_t four;
    memcpy(&four, x, sizeof four);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
}

static inline word_vector words_and(word_vector a, word_vector b)
{
    return vandq_u32(a, b);
}

static inline word_vector words_or(word_vector a, word_vector b)
{
    return vorrq_u32(a, b);
}

static inline word_vector words_shift_left(word_vector a, int bits)
{
    return vshlq_u32(a, vdupq_n_s32(bits));
}

static inline word_vector words_shift_right(word_vector a, int bits)
{
    return vshlq_u32(a, vdupq_n_s32(-bits));
}

static inline vector words_to_floats(word_vector a)
{
    return vcvtq_f32_u32(a);
}

static inline vector words_low_nibble(word_vector a)
{
    return vcvtq_f32_u32(vandq_u32(a, vdupq_n_u32(15)));
}

#endif
