#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif

#include "measure/machine_loops.h"

#include <immintrin.h>

#define LOOPS                 machine_loops_avx2
#define FLOATS                __m256
#define WORDS                 __m256i
#define ACCUMULATORS          12
#define BROADCAST(x)          _mm256_set1_ps(x)
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps((a), (b), (c))
#define LOAD(p)               _mm256_load_si256((const __m256i *)(const void *)(p))
#define ADD(a, b)             _mm256_add_epi64((a), (b))

#include "measure/machine_loops_body.inc"
