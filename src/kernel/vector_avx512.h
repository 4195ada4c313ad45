/* The vector vocabulary on AVX-512 (F, VL, DQ, BW): 16 floats a vector. vector_avx2.h says what
 * each name promises; here a `mask` is a mask register, a bit a lane. */
#ifndef ATTN_KERNEL_VECTOR_AVX512_H
#define ATTN_KERNEL_VECTOR_AVX512_H

#include <immintrin.h>
#include <stdint.h>

enum { VECTOR_LANES = 16 };

typedef __m512 vector;
typedef __mmask16 mask;

static inline vector vector_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vector vector_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline vector vector_broadcast(const float *x)
{
    return _mm512_set1_ps(*x);
}

static inline vector vector_load_aligned(const float *x)
{
    return _mm512_load_ps(x);
}

static inline void vector_store_aligned(float *x, vector a)
{
    _mm512_store_ps(x, a);
}

static inline vector vector_load(const float *x)
{
    return _mm512_loadu_ps(x);
}

static inline void vector_store(float *x, vector a)
{
    _mm512_storeu_ps(x, a);
}

/* The first n of 16 lanes, 0 ≤ n ≤ 16. */
static inline mask vector_first_lanes(int64_t n)
{
    return (mask)((1u << n) - 1u);
}

static inline vector vector_load_part(const float *x, int64_t n)
{
    return _mm512_maskz_loadu_ps(vector_first_lanes(n), x);
}

static inline void vector_store_part(float *x, int64_t n, vector a)
{
    _mm512_mask_storeu_ps(x, vector_first_lanes(n), a);
}

static inline vector vector_add(vector a, vector b)
{
    return _mm512_add_ps(a, b);
}

static inline vector vector_subtract(vector a, vector b)
{
    return _mm512_sub_ps(a, b);
}

static inline vector vector_multiply(vector a, vector b)
{
    return _mm512_mul_ps(a, b);
}

static inline vector vector_divide(vector a, vector b)
{
    return _mm512_div_ps(a, b);
}

static inline vector vector_multiply_add(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vector vector_add_product(vector sum, vector a, vector b)
{
#if defined(__AVX512F__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return _mm512_fmadd_ps(a, b, sum); /* emulated: see tests/emulation */
#endif
}

static inline vector vector_negative_multiply_add(vector a, vector b, vector c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline vector vector_maximum(vector a, vector b)
{
    return _mm512_max_ps(a, b);
}

static inline vector vector_absolute(vector a)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}

static inline mask vector_less(vector a, vector b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline mask vector_equal(vector a, vector b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline mask mask_and(mask a, mask b)
{
    return (mask)(a & b);
}

static inline vector vector_select(mask m, vector a, vector b)
{
    return _mm512_mask_mov_ps(b, m, a);
}

static inline vector vector_clear(mask m, vector a)
{
    return _mm512_maskz_mov_ps((mask)~m, a);
}

static inline uint32_t mask_bits(mask m)
{
    return m;
}

static inline mask mask_from_bits(uint32_t bits)
{
    return (mask)bits;
}

static inline vector vector_power_of_two(vector shifted)
{
    __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    __m512i one = _mm512_castps_si512(_mm512_set1_ps(1.0f));
    return _mm512_castsi512_ps(_mm512_add_epi32(one, exponent));
}

/* The lookup takes the lower four bits of n: the table stands twice. */
static inline vector vector_power_of_eighths(vector shifted)
{
    const __m512i table =
        _mm512_broadcast_i64x4(_mm256_setr_epi32(0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                                 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7));
    __m512i n = _mm512_castps_si512(shifted);
    __m512i power = _mm512_permutexvar_epi32(n, table);
    return _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_slli_epi32(n, 20)));
}

static inline float vector_sum(vector a)
{
    __m256 upper = _mm512_extractf32x8_ps(a, 1);
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), upper);
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    sum = _mm_add_ss(sum, _mm_movehdup_ps(sum));
    return _mm_cvtss_f32(sum);
}

/* Within the quarters of 4 lanes first, then the quarters among the rows. */
static inline void vector_transpose(vector rows[VECTOR_LANES])
{
    vector a[16], b[16];
    for (int i = 0; i < 8; i++) {
        a[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        b[4 * i + 0] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], _MM_SHUFFLE(1, 0, 1, 0));
        b[4 * i + 1] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], _MM_SHUFFLE(3, 2, 3, 2));
        b[4 * i + 2] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], _MM_SHUFFLE(1, 0, 1, 0));
        b[4 * i + 3] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], _MM_SHUFFLE(3, 2, 3, 2));
    }
    /* Quarter q of b[4·i + j] holds rows 4·i … 4·i + 3 of column 4·q + j. */
    for (int j = 0; j < 4; j++) {
        vector even_low = _mm512_shuffle_f32x4(b[j], b[j + 4], _MM_SHUFFLE(2, 0, 2, 0));
        vector odd_low = _mm512_shuffle_f32x4(b[j], b[j + 4], _MM_SHUFFLE(3, 1, 3, 1));
        vector even_high = _mm512_shuffle_f32x4(b[j + 8], b[j + 12], _MM_SHUFFLE(2, 0, 2, 0));
        vector odd_high = _mm512_shuffle_f32x4(b[j + 8], b[j + 12], _MM_SHUFFLE(3, 1, 3, 1));
        rows[j] = _mm512_shuffle_f32x4(even_low, even_high, _MM_SHUFFLE(2, 0, 2, 0));
        rows[j + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, _MM_SHUFFLE(2, 0, 2, 0));
        rows[j + 8] = _mm512_shuffle_f32x4(even_low, even_high, _MM_SHUFFLE(3, 1, 3, 1));
        rows[j + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, _MM_SHUFFLE(3, 1, 3, 1));
    }
}

static inline vector vector_shift_in(vector before, vector a)
{
    const __m512i from =
        _mm512_setr_epi32(15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    return _mm512_permutex2var_ps(before, from, a);
}

static inline vector vector_load_f16(const uint16_t *x)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

static inline vector vector_load_bf16(const uint16_t *x)
{
    __m512i upper = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(upper, 16));
}

static inline vector vector_load_i8(const int8_t *x)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)x);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

static inline void vector_store_f16(uint16_t *x, vector a)
{
    __m256i halves = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((__m256i *)(void *)x, halves);
}

static inline void vector_store_bf16(uint16_t *x, vector a)
{
    __m512i bits = _mm512_castps_si512(a);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    mask is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    __m512i upper = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, is_nan, quiet), 16);
    _mm256_storeu_si256((__m256i *)(void *)x, _mm512_cvtepi32_epi16(upper));
}

static inline mask vector_bit(const uint32_t *words, uint32_t bit)
{
    return _mm512_test_epi32_mask(_mm512_load_si512(words), _mm512_set1_epi32((int)bit));
}

static inline uint32_t vector_zero_bytes(const unsigned char *x)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return _mm256_testn_epi8_mask(bytes, bytes);
}

static inline vector vector_load_bf16_even(const uint16_t *x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(x), 16));
}

static inline vector vector_load_bf16_odd(const uint16_t *x)
{
    /* As in vector_avx2.h: a second load costs less than a register. */
    __asm__("" : "+r"(x));
    __m512i upper = _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(-0x10000));
    return _mm512_castsi512_ps(upper);
}

/* Within the quarters of 4 lanes first, then the quarters. */
static inline vector vector_sums(const vector rows[VECTOR_LANES])
{
    vector pairs[8], quads[4], octets[2];
    for (int i = 0; i < 8; i++)
        pairs[i] = _mm512_add_ps(_mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]),
                                 _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));
    for (int i = 0; i < 4; i++) {
        vector a = pairs[2 * i], b = pairs[2 * i + 1];
        quads[i] = _mm512_add_ps(_mm512_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 1, 0)),
                                 _mm512_shuffle_ps(a, b, _MM_SHUFFLE(3, 2, 3, 2)));
    }
    for (int i = 0; i < 2; i++) {
        vector a = quads[2 * i], b = quads[2 * i + 1];
        octets[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0)),
                                  _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    }
    vector a = octets[0], b = octets[1];
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0)),
                         _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
}

typedef __m512i word_vector;

static inline word_vector words_set(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

static inline word_vector words_load_aligned(const uint32_t *x)
{
    return _mm512_load_si512((const void *)x);
}

static inline word_vector words_xor(word_vector a, word_vector b)
{
    return _mm512_xor_si512(a, b);
}

static inline word_vector words_multiply_even(word_vector a, word_vector b)
{
    return _mm512_mul_epu32(a, b);
}

static inline word_vector words_odd_to_even(word_vector a)
{
    return _mm512_castps_si512(_mm512_movehdup_ps(_mm512_castsi512_ps(a)));
}

static inline word_vector words_interleave(word_vector even, word_vector odd)
{
    return _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
}

static inline mask words_less(word_vector a, word_vector b)
{
    return _mm512_cmplt_epu32_mask(a, b);
}

static inline word_vector words_load_bytes(const unsigned char *x)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)x));
}

static inline word_vector words_and(word_vector a, word_vector b)
{
    return _mm512_and_si512(a, b);
}

static inline word_vector words_or(word_vector a, word_vector b)
{
    return _mm512_or_si512(a, b);
}

static inline word_vector words_shift_left(word_vector a, int bits)
{
    return _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits));
}

static inline word_vector words_shift_right(word_vector a, int bits)
{
    return _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits));
}

static inline vector words_to_floats(word_vector a)
{
    return _mm512_cvtepi32_ps(a);
}

/* The lookup takes no more than the lower four bits. */
static inline vector words_low_nibble(word_vector a)
{
    const vector table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(a, table);
}

#endif
