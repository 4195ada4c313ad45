#if defined(__linux__)
#define _DEFAULT_SOURCE /* syscall */
#endif
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* CPUID leaf 1, register ecx; leaf 7, registers ebx, edx and (subleaf 1) eax (Intel SDM, volume 2,
 * CPUID). */
enum {
    LEAF1_ECX_FMA = 1u << 12,
    LEAF1_ECX_OSXSAVE = 1u << 27,
    LEAF1_ECX_AVX = 1u << 28,
    LEAF1_ECX_F16C = 1u << 29,
    LEAF1_ECX_AVX2_LEVEL = LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C,
    LEAF7_EBX_AVX2 = 1u << 5,
    LEAF7_EDX_AMX_LEVEL = 1u << 22 | 1u << 24, /* AMX-BF16, AMX-TILE */
    LEAF7_EAX_AVX512_BF16 = 1u << 5
};
/* F, DQ, BW and VL; too large for an enumeration constant of C11. */
#define LEAF7_EBX_AVX512_LEVEL (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31)

/* XCR0: the register files that the operating system saves when it switches threads. */
enum {
    XCR0_SSE_AND_AVX = 0x6,
    XCR0_AVX512 = 0xe0, /* mask registers, upper halves of zmm0–15, zmm16–31 */
    XCR0_AMX = 0x60000  /* shapes of tiles, tiles */
};

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

attn_isa attn_cpu_best_isa(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & LEAF1_ECX_AVX2_LEVEL) != LEAF1_ECX_AVX2_LEVEL)
        return ATTN_ISA_SCALAR;
    uint64_t saved = read_xcr0();
    if ((saved & XCR0_SSE_AND_AVX) != XCR0_SSE_AND_AVX)
        return ATTN_ISA_SCALAR;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & LEAF7_EBX_AVX2))
        return ATTN_ISA_SCALAR;
#if defined(ATTN_EMULATE_AVX512)
    return ATTN_ISA_AVX512; /* AVX2 is what the emulation runs on */
#else
    if ((saved & XCR0_AVX512) != XCR0_AVX512 ||
        (b & LEAF7_EBX_AVX512_LEVEL) != LEAF7_EBX_AVX512_LEVEL)
        return ATTN_ISA_AVX2;
    return ATTN_ISA_AVX512;
#endif
}

bool attn_cpu_has_bf16_dots(void)
{
    if (attn_cpu_best_isa() != ATTN_ISA_AVX512)
        return false;
#if defined(ATTN_EMULATE_AVX512)
    return true;
#else
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & LEAF7_EAX_AVX512_BF16) != 0;
#endif
}

/* Linux keeps the tiles' large state from processes that did not ask for it
 * (Documentation/arch/x86/xstate.rst). */
static bool may_use_tiles(void)
{
#if defined(__linux__) && !defined(ATTN_EMULATE_AVX512)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

bool attn_cpu_has_bf16_tiles(void)
{
    unsigned a, b, c, d;
    return attn_cpu_has_bf16_dots() && (read_xcr0() & XCR0_AMX) == XCR0_AMX &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d & LEAF7_EDX_AMX_LEVEL) == LEAF7_EDX_AMX_LEVEL && may_use_tiles();
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
#if defined(__aarch64__)
    return ATTN_ISA_NEON; /* Advanced SIMD is part of the architecture */
#else
    return ATTN_ISA_SCALAR;
#endif
}

bool attn_cpu_has_bf16_dots(void)
{
    return false;
}

bool attn_cpu_has_bf16_tiles(void)
{
    return false;
}

void attn_cpu_name(char *name, size_t size)
{
    snprintf(name, size, "%s", "");
}

#endif
