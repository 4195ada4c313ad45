#include "float_control.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

/* MXCSR (Intel SDM, volume 1, section 10.2.3). */
const uint64_t float_control_default = 0x1f80;
const struct float_control float_controls[] = {
    {"rounding down", 0x1f80 | 0x2000},
    {"rounding up", 0x1f80 | 0x4000},
    {"rounding toward zero", 0x1f80 | 0x6000},
    {"flush to zero", 0x1f80 | 0x8000},
    {"subnormal inputs as zero", 0x1f80 | 0x0040},
    {"flags raised", 0x1f80 | 0x003f},
    {"division by zero, overflow, invalid trap", 0x1f80 & ~0x0680},
    {"everything at once", 0x8040 | 0x6000 | 0x0010},
};
const int float_control_count = sizeof float_controls / sizeof float_controls[0];

uint64_t float_control_read(void)
{
    return _mm_getcsr();
}

void float_control_write(uint64_t word)
{
    _mm_setcsr((unsigned)word);
}

#elif defined(__aarch64__)

/* FPCR below, FPSR above (Arm ARM, C5.2). Traps are left out: many CPUs have none. */
const uint64_t float_control_default = 0;
const struct float_control float_controls[] = {
    {"rounding up", UINT64_C(1) << 22},
    {"rounding down", UINT64_C(2) << 22},
    {"rounding toward zero", UINT64_C(3) << 22},
    {"flush to zero", UINT64_C(1) << 24},
    {"one NaN for all", UINT64_C(1) << 25},
    {"flags raised", UINT64_C(0x9f) << 32},
    {"everything at once", UINT64_C(0x1f) << 32 | UINT64_C(0xf) << 22},
};
const int float_control_count = sizeof float_controls / sizeof float_controls[0];

uint64_t float_control_read(void)
{
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    return status << 32 | control;
}

void float_control_write(uint64_t word)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(word & UINT32_MAX));
    __asm__ volatile("msr fpsr, %0" : : "r"(word >> 32));
}

#else

const uint64_t float_control_default = 0;
const struct float_control float_controls[] = {{"", 0}};
const int float_control_count = 0;

uint64_t float_control_read(void)
{
    return 0;
}

void float_control_write(uint64_t word)
{
    (void)word;
}

#endif
