#include "base/float_mode.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

/* MXCSR as a process starts with it (System V ABI, AMD64 supplement, section 3.4.1): all exceptions
 * masked, to nearest, neither flush-to-zero nor denormals-are-zero, no flag raised. */
enum { MXCSR_DEFAULT = 0x1f80 };

uint64_t attn_float_mode_enter(void)
{
    unsigned mode = _mm_getcsr();
    if (mode != MXCSR_DEFAULT)
        _mm_setcsr(MXCSR_DEFAULT);
    return mode;
}

void attn_float_mode_leave(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}

#elif defined(__aarch64__)

/* FPCR holds the modes, all 0 by default, and FPSR the sticky flags (Arm ARM, C5.2); both use their
 * lower 32 bits only. */
uint64_t attn_float_mode_enter(void)
{
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
    return status << 32 | control;
}

void attn_float_mode_leave(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode & UINT32_MAX));
    __asm__ volatile("msr fpsr, %0" : : "r"(mode >> 32));
}

#else

/* No way to reach the modes is known here: results are those of the modes that the host has set. */
uint64_t attn_float_mode_enter(void)
{
    return 0;
}

void attn_float_mode_leave(uint64_t mode)
{
    (void)mode;
}

#endif
