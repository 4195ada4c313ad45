#if !defined(__AVX512F__)
#error "compile this file with -mavx512f"
#endif

#include "measure/machine_loops.h"

#include <immintrin.h>

#define LOOPS                 machine_loops_avx512
#define FLOATS                __m512
#define WORDS                 __m512i
#define ACCUMULATORS          16
#define BROADCAST(x)          _mm512_set1_ps(x)
#define MULTIPLY_ADD(a, b, c) _mm512_fmadd_ps((a), (b), (c))
#define LOAD(p)               _mm512_load_si512((const void *)(p))
#define ADD(a, b)             _mm512_add_epi64((a), (b))

#include "measure/machine_loops_body.inc"
