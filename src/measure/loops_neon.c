#if !defined(__ARM_NEON) || !defined(__aarch64__)
#error "compile this file for AArch64"
#endif

#include "measure/machine_loops.h"

#include <arm_neon.h>

#define LOOPS                 machine_loops_neon
#define FLOATS                float32x4_t
#define WORDS                 uint64x2_t
#define ACCUMULATORS          16
#define BROADCAST(x)          vdupq_n_f32(x)
#define MULTIPLY_ADD(a, b, c) vfmaq_f32((c), (a), (b))
#define LOAD(p)               vld1q_u64((const uint64_t *)(const void *)(p))
#define ADD(a, b)             vaddq_u64((a), (b))

#include "measure/machine_loops_body.inc"
