/* AVX-512 in portable C, for CPUs that lack it: stands before the compiler's own header on the
 * include path of the units that are to be emulated, which are compiled for AVX2, FMA and F16C.
 * Most comes from SIMDe; below is what its version 0.7.4 does not have. */
#ifndef ATTN_TESTS_EMULATION_IMMINTRIN_H
#define ATTN_TESTS_EMULATION_IMMINTRIN_H

#include_next <immintrin.h>

#include <stdint.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

/* A vector as its halves and lanes. */
union emulated {
    __m512 floats;
    __m512i integers;
    __m512bh pairs;
    __m256 half_floats[2];
    __m256i half_integers[2];
    float lanes[16];
    uint32_t words[16];
    uint16_t halves[32];
};

static inline __m256 emulated_half(__m512 a, int which)
{
    return (union emulated){.floats = a}.half_floats[which];
}
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(a, which) emulated_half(a, which)

static inline __m512 emulated_maskz_loadu_ps(__mmask16 m, const float *x)
{
    union emulated a;
    for (int n = 0; n < 16; n++)
        a.lanes[n] = m >> n & 1 ? x[n] : 0.0f;
    return a.floats;
}
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps(m, x) emulated_maskz_loadu_ps(m, x)

static inline void emulated_mask_storeu_ps(float *x, __mmask16 m, __m512 a)
{
    for (int n = 0; n < 16; n++)
        if (m >> n & 1)
            x[n] = (union emulated){.floats = a}.lanes[n];
}
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps(x, m, a) emulated_mask_storeu_ps(x, m, a)

static inline __m512i emulated_maskz_loadu_epi16(__mmask32 m, const void *x)
{
    union emulated a;
    for (int n = 0; n < 32; n++)
        a.halves[n] = m >> n & 1 ? ((const uint16_t *)x)[n] : 0;
    return a.integers;
}
#undef _mm512_maskz_loadu_epi16
#define _mm512_maskz_loadu_epi16(m, x) emulated_maskz_loadu_epi16(m, x)

static inline __m256i emulated_maskz_loadu_epi16_256(__mmask16 m, const void *x)
{
    return (union emulated){.integers = emulated_maskz_loadu_epi16(m, x)}.half_integers[0];
}
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16(m, x) emulated_maskz_loadu_epi16_256(m, x)

static inline void emulated_mask_storeu_epi32(void *x, __mmask16 m, __m512i a)
{
    for (int n = 0; n < 16; n++)
        if (m >> n & 1)
            ((uint32_t *)x)[n] = (union emulated){.integers = a}.words[n];
}
#undef _mm512_mask_storeu_epi32
#define _mm512_mask_storeu_epi32(x, m, a) emulated_mask_storeu_epi32(x, m, a)

/* Quarters 0 and 1 of the result from a, 2 and 3 from b, by two bits each. */
static inline __m512 emulated_shuffle_f32x4(__m512 a, __m512 b, int quarters)
{
    union emulated from[2] = {{.floats = a}, {.floats = b}}, to;
    for (int n = 0; n < 16; n++)
        to.lanes[n] = from[n / 8].lanes[(quarters >> n / 4 * 2 & 3) * 4 + n % 4];
    return to.floats;
}
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, quarters) emulated_shuffle_f32x4(a, b, quarters)

static inline __m512 emulated_movehdup_ps(__m512 a)
{
    union emulated from = {.floats = a}, to;
    for (int n = 0; n < 16; n++)
        to.words[n] = from.words[n | 1];
    return to.floats;
}
#undef _mm512_movehdup_ps
#define _mm512_movehdup_ps(a) emulated_movehdup_ps(a)

static inline __mmask32 emulated_testn_epi8_mask(__m256i a, __m256i b)
{
    __m256i zero = _mm256_cmpeq_epi8(_mm256_and_si256(a, b), _mm256_setzero_si256());
    return (__mmask32)_mm256_movemask_epi8(zero);
}
#undef _mm256_testn_epi8_mask
#define _mm256_testn_epi8_mask(a, b) emulated_testn_epi8_mask(a, b)

static inline __mmask16 emulated_cmplt_epu32_mask(__m512i a, __m512i b)
{
    union emulated x = {.integers = a}, y = {.integers = b};
    unsigned bits = 0;
    for (int n = 0; n < 16; n++)
        bits |= (unsigned)(x.words[n] < y.words[n]) << n;
    return (__mmask16)bits;
}
#undef _mm512_cmplt_epu32_mask
#define _mm512_cmplt_epu32_mask(a, b) emulated_cmplt_epu32_mask(a, b)

static inline __m512 emulated_cvtepi32_ps(__m512i a)
{
    union emulated from = {.integers = a}, to;
    for (int i = 0; i < 2; i++)
        to.half_floats[i] = _mm256_cvtepi32_ps(from.half_integers[i]);
    return to.floats;
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps(a) emulated_cvtepi32_ps(a)

static inline __m512i emulated_cvtepi8_epi32(__m128i a)
{
    union emulated to;
    to.half_integers[0] = _mm256_cvtepi8_epi32(a);
    to.half_integers[1] = _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8));
    return to.integers;
}
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32(a) emulated_cvtepi8_epi32(a)

static inline __m512i emulated_cvtepu8_epi32(__m128i a)
{
    union emulated to;
    to.half_integers[0] = _mm256_cvtepu8_epi32(a);
    to.half_integers[1] = _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8));
    return to.integers;
}
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32(a) emulated_cvtepu8_epi32(a)

static inline __m512i emulated_cvtepu16_epi32(__m256i a)
{
    union emulated to;
    to.half_integers[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a));
    to.half_integers[1] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1));
    return to.integers;
}
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32(a) emulated_cvtepu16_epi32(a)

static inline __m256i emulated_cvtepi32_epi16(__m512i a)
{
    union emulated from = {.integers = a}, to;
    for (int n = 0; n < 16; n++)
        to.halves[n] = (uint16_t)from.words[n];
    return to.half_integers[0];
}
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16(a) emulated_cvtepi32_epi16(a)

static inline __m512 emulated_cvtph_ps(__m256i a)
{
    union emulated to;
    to.half_floats[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    to.half_floats[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    return to.floats;
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps(a) emulated_cvtph_ps(a)

#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, rounding)                                                               \
    _mm256_set_m128i(_mm256_cvtps_ph(emulated_half(a, 1), rounding),                               \
                     _mm256_cvtps_ph(emulated_half(a, 0), rounding))

/* To bf16, to nearest even; subnormals to 0, as the instruction does. */
static inline uint16_t emulated_bf16(uint32_t bits)
{
    uint32_t size = bits & UINT32_C(0x7fffffff);
    if (size > UINT32_C(0x7f800000))
        return (uint16_t)(bits >> 16 | 0x40);
    if (size < UINT32_C(0x00800000))
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The lower half from b, the upper half from a. */
static inline __m512bh emulated_cvtne2ps_pbh(__m512 a, __m512 b)
{
    union emulated from[2] = {{.floats = b}, {.floats = a}}, to;
    for (int n = 0; n < 32; n++)
        to.halves[n] = emulated_bf16(from[n / 16].words[n % 16]);
    return to.pairs;
}
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh(a, b) emulated_cvtne2ps_pbh(a, b)

static inline __m256bh emulated_cvtneps_pbh(__m512 a)
{
    union emulated to = {.pairs = emulated_cvtne2ps_pbh(a, a)};
    return (__m256bh)to.half_integers[0];
}
#undef _mm512_cvtneps_pbh
#define _mm512_cvtneps_pbh(a) emulated_cvtneps_pbh(a)

#endif
