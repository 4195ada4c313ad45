#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* CPUID leaf 1, register ecx, and leaf 7, register ebx (Intel SDM, volume 2, CPUID). */
enum {
    LEAF1_ECX_FMA = 1u << 12,
    LEAF1_ECX_OSXSAVE = 1u << 27,
    LEAF1_ECX_AVX = 1u << 28,
    LEAF7_EBX_AVX2 = 1u << 5
};

/* XCR0: the register files that the operating system saves when it switches threads. */
enum { XCR0_SSE_AND_AVX = 0x6 };

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

attn_isa attn_cpu_best_isa(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return ATTN_ISA_SCALAR;
    unsigned needed = LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX;
    if ((c & needed) != needed || (read_xcr0() & XCR0_SSE_AND_AVX) != XCR0_SSE_AND_AVX)
        return ATTN_ISA_SCALAR;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & LEAF7_EBX_AVX2))
        return ATTN_ISA_SCALAR;
    return ATTN_ISA_AVX2;
}

void attn_cpu_name(char *name, size_t size)
{
    unsigned words[12] = {0};
    unsigned highest = (unsigned)__get_cpuid_max(0x80000000u, NULL); /* int in clang's header */
    if (highest >= 0x80000004u)
        for (unsigned leaf = 0; leaf < 3; leaf++)
            __get_cpuid(0x80000002u + leaf, &words[4 * leaf], &words[4 * leaf + 1],
                        &words[4 * leaf + 2], &words[4 * leaf + 3]);
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    const char *begin = text + strspn(text, " ");
    size_t length = strlen(begin);
    while (length && begin[length - 1] == ' ')
        length--;
    snprintf(name, size, "%.*s", (int)length, begin);
}

#else

attn_isa attn_cpu_best_isa(void)
{
    return ATTN_ISA_SCALAR;
}

void attn_cpu_name(char *name, size_t size)
{
    snprintf(name, size, "%s", "");
}

#endif
