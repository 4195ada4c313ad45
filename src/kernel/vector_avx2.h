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

/* 2^n, where the low bits of the representation of `shifted` hold n: it is n + 1.5·2²³, and the
 * result a normal number. Any value for other arguments. */
static inline vector vector_power_of_two(vector shifted)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    __m256i one = _mm256_castps_si256(_mm256_set1_ps(1.0f));
    return _mm256_castsi256_ps(_mm256_add_epi32(one, exponent));
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

#endif
