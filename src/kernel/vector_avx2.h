/* The vector vocabulary on AVX2 and FMA: 8 floats a vector.
 *
 * Every ISA gives the same names, so that one body serves all. A `mask` has all bits of a lane set
 * or clear. Loads and stores named "aligned" want ATTN_ALIGNMENT; the others want nothing. */
#ifndef ATTN_KERNEL_VECTOR_AVX2_H
#define ATTN_KERNEL_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdint.h>

enum { VECTOR_LANES = 8 };

typedef __m256 vector;
typedef __m256 mask;

static inline vector vector_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vector vector_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline vector vector_broadcast(const float *x)
{
    return _mm256_broadcast_ss(x);
}

static inline vector vector_load_aligned(const float *x)
{
    return _mm256_load_ps(x);
}

static inline void vector_store_aligned(float *x, vector a)
{
    _mm256_store_ps(x, a);
}

static inline vector vector_load(const float *x)
{
    return _mm256_loadu_ps(x);
}

static inline void vector_store(float *x, vector a)
{
    _mm256_storeu_ps(x, a);
}

/* Bits of the first n of 8 lanes, 0 ≤ n ≤ 8. */
static inline __m256i vector_first_lanes(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* The first n lanes, 0 elsewhere; no other element is touched. */
static inline vector vector_load_part(const float *x, int64_t n)
{
    return _mm256_maskload_ps(x, vector_first_lanes(n));
}

static inline void vector_store_part(float *x, int64_t n, vector a)
{
    _mm256_maskstore_ps(x, vector_first_lanes(n), a);
}

static inline vector vector_add(vector a, vector b)
{
    return _mm256_add_ps(a, b);
}

static inline vector vector_subtract(vector a, vector b)
{
    return _mm256_sub_ps(a, b);
}

static inline vector vector_multiply(vector a, vector b)
{
    return _mm256_mul_ps(a, b);
}

static inline vector vector_divide(vector a, vector b)
{
    return _mm256_div_ps(a, b);
}

/* a·b + c with one rounding. */
static inline vector vector_multiply_add(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* The same for sums that stay in one register through a long loop. GCC 12 lets an unrolled loop's
 * sums wander from register to register, and some to memory; an instruction that names its sum as
 * both operand and result keeps them in place. */
static inline vector vector_add_product(vector sum, vector a, vector b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
}

/* c − a·b with one rounding. */
static inline vector vector_negative_multiply_add(vector a, vector b, vector c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

/* The larger; b where either is NaN. */
static inline vector vector_maximum(vector a, vector b)
{
    return _mm256_max_ps(a, b);
}

static inline vector vector_absolute(vector a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

static inline mask vector_less(vector a, vector b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline mask vector_equal(vector a, vector b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

static inline mask mask_and(mask a, mask b)
{
    return _mm256_and_ps(a, b);
}

/* a where m is set, else b. */
static inline vector vector_select(mask m, vector a, vector b)
{
    return _mm256_blendv_ps(b, a, m);
}

/* 0 where m is set, else a. */
static inline vector vector_clear(mask m, vector a)
{
    return _mm256_andnot_ps(m, a);
}

/* A bit for each lane, lane 0 lowest. */
static inline uint32_t mask_bits(mask m)
{
    return (uint32_t)_mm256_movemask_ps(m);
}

/* The reverse; bits above the lanes are of no meaning. */
static inline mask mask_from_bits(uint32_t bits)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), lane);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane));
}

/* 2^n, where the low bits of the representation of `shifted` hold n: it is n + 1.5·2²³, and the
 * result a normal number. Any value for other arguments. */
static inline vector vector_power_of_two(vector shifted)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    __m256i one = _mm256_castps_si256(_mm256_set1_ps(1.0f));
    return _mm256_castsi256_ps(_mm256_add_epi32(one, exponent));
}

/* 2^(n/8), where the low bits of the representation of `shifted` hold n: it is n + 1.5·2²³, and the
 * result a normal number. Any value for other arguments. The table holds the bits of 2^(i/8) less
 * i·2²⁰, which n·2²⁰ brings with it. */
static inline vector vector_power_of_eighths(vector shifted)
{
    const __m256i table = _mm256_setr_epi32(0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                            0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7);
    __m256i n = _mm256_castps_si256(shifted);
    __m256i power = _mm256_permutevar8x32_epi32(table, n);
    return _mm256_castsi256_ps(_mm256_add_epi32(power, _mm256_slli_epi32(n, 20)));
}

/* The sum of all lanes, added in a fixed tree. */
static inline float vector_sum(vector a)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    sum = _mm_add_ss(sum, _mm_movehdup_ps(sum));
    return _mm_cvtss_f32(sum);
}

/* rows[i] lane j becomes rows[j] lane i. */
static inline void vector_transpose(vector rows[VECTOR_LANES])
{
    vector a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[4 * i + 0] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], _MM_SHUFFLE(1, 0, 1, 0));
        b[4 * i + 1] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], _MM_SHUFFLE(3, 2, 3, 2));
        b[4 * i + 2] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], _MM_SHUFFLE(1, 0, 1, 0));
        b[4 * i + 3] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], _MM_SHUFFLE(3, 2, 3, 2));
    }
    for (int i = 0; i < 4; i++) {
        rows[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        rows[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* The lanes of a moved up by one, and in lane 0 the last of `before`. */
static inline vector vector_shift_in(vector before, vector a)
{
    const __m256i from = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    return _mm256_blend_ps(_mm256_permutevar8x32_ps(a, from),
                           _mm256_permutevar8x32_ps(before, from), 1);
}

/* Stored elements, VECTOR_LANES of them side by side, to f32: exact, but that a signalling NaN of
 * f16 comes out quiet. */
static inline vector vector_load_f16(const uint16_t *x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x));
}

static inline vector vector_load_bf16(const uint16_t *x)
{
    __m256i upper = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(upper, 16));
}

static inline vector vector_load_i8(const int8_t *x)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)x);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* And back, rounded to nearest even: what is too large becomes infinity, NaN a quiet NaN of the
 * same sign and upper bits. */
static inline void vector_store_f16(uint16_t *x, vector a)
{
    _mm_storeu_si128((__m128i *)(void *)x, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

static inline void vector_store_bf16(uint16_t *x, vector a)
{
    __m256i bits = _mm256_castps_si256(a);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128((__m128i *)(void *)x, packed);
}

/* The lanes whose word has the bit `bit` (one of 32) set; words are aligned. */
static inline mask vector_bit(const uint32_t *words, uint32_t bit)
{
    __m256i wanted = _mm256_set1_epi32((int)bit);
    __m256i word = _mm256_load_si256((const __m256i *)(const void *)words);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(word, wanted), wanted));
}

/* Bit t is set where byte t of 32 is 0. */
static inline uint32_t vector_zero_bytes(const unsigned char *x)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_setzero_si256()));
}

/* 2·VECTOR_LANES elements of bf16 in two vectors: those of even places, and those of odd ones. */
static inline vector vector_load_bf16_even(const uint16_t *x)
{
    __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}

static inline vector vector_load_bf16_odd(const uint16_t *x)
{
    /* A second load costs less than a register that keeps the pairs: this hides that it is one. */
    __asm__("" : "+r"(x));
    __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
}

/* Lane n is the sum of the lanes of rows[n], all added in the same fixed tree. */
static inline vector vector_sums(const vector rows[VECTOR_LANES])
{
    vector pairs[4], quads[2];
    for (int i = 0; i < 4; i++)
        pairs[i] = _mm256_add_ps(_mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]),
                                 _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        quads[i] = _mm256_add_ps(
            _mm256_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], _MM_SHUFFLE(1, 0, 1, 0)),
            _mm256_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], _MM_SHUFFLE(3, 2, 3, 2)));
    return _mm256_add_ps(_mm256_permute2f128_ps(quads[0], quads[1], 0x20),
                         _mm256_permute2f128_ps(quads[0], quads[1], 0x31));
}

/* Words: VECTOR_LANES whole numbers of 32 bits, without sign, for random numbers. Products of them
 * have 64 bits and so take two lanes; what goes on from there uses the even lanes alone, and what
 * stands in the odd ones is of no meaning. */
typedef __m256i word_vector;

static inline word_vector words_set(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}

static inline word_vector words_load_aligned(const uint32_t *x)
{
    return _mm256_load_si256((const __m256i *)(const void *)x);
}

static inline word_vector words_xor(word_vector a, word_vector b)
{
    return _mm256_xor_si256(a, b);
}

/* Of the even lanes: the lower half of a·b in its lane, the upper half in the lane behind. */
static inline word_vector words_multiply_even(word_vector a, word_vector b)
{
    return _mm256_mul_epu32(a, b);
}

/* The odd lanes in the even ones before them. */
static inline word_vector words_odd_to_even(word_vector a)
{
    /* Not a shift: that would wait for the unit that multiplies. */
    return _mm256_shuffle_epi32(a, _MM_SHUFFLE(3, 3, 1, 1));
}

/* The even lanes of `even` there, those of `odd` in the lanes behind. */
static inline word_vector words_interleave(word_vector even, word_vector odd)
{
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline mask words_less(word_vector a, word_vector b)
{
    /* The instruction compares numbers with a sign: both are moved by 2³¹. */
    const __m256i middle = _mm256_set1_epi32(INT32_MIN);
    __m256i less = _mm256_cmpgt_epi32(_mm256_xor_si256(b, middle), _mm256_xor_si256(a, middle));
    return _mm256_castsi256_ps(less);
}

/* VECTOR_LANES bytes, a lane each. */
static inline word_vector words_load_bytes(const unsigned char *x)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)x));
}

static inline word_vector words_and(word_vector a, word_vector b)
{
    return _mm256_and_si256(a, b);
}

static inline word_vector words_or(word_vector a, word_vector b)
{
    return _mm256_or_si256(a, b);
}

/* 0 ≤ bits < 32 */
static inline word_vector words_shift_left(word_vector a, int bits)
{
    return _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits));
}

static inline word_vector words_shift_right(word_vector a, int bits)
{
    return _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits));
}

/* Words below 2²⁴. */
static inline vector words_to_floats(word_vector a)
{
    return _mm256_cvtepi32_ps(a);
}

/* The lower four bits of each word as a number. */
static inline vector words_low_nibble(word_vector a)
{
    return _mm256_cvtepi32_ps(_mm256_and_si256(a, _mm256_set1_epi32(15)));
}

#endif
