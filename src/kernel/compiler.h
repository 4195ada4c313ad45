/* What the kernels' bodies ask of the compiler. */
#ifndef ATTN_KERNEL_COMPILER_H
#define ATTN_KERNEL_COMPILER_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Unrolls the loop that follows, whose count is a constant, wholly: arrays that it indexes can then
 * live in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

/* Loops that are unrolled by hand hide from the compiler what they count with, and keep the order
 * of their steps: left to itself GCC 12 gives each row a pointer to count up, moves loads from one
 * step to another, and then has too few registers for the sums. Fewer instructions around the
 * multiply-adds count most where two hardware threads share a core's decoder. */
#define OPAQUE(x)  __asm__("" : "+r"(x))
#define IN_ORDER() __asm__ volatile("" ::: "memory")

#endif
