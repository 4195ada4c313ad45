/* The floating-point control and status words of the running thread, for tests that set modes which
 * a host may have set and look for them afterwards. */
#ifndef ATTN_TESTS_FLOAT_CONTROL_H
#define ATTN_TESTS_FLOAT_CONTROL_H

#include <stdint.h>

/* Some unusual setting: rounding, subnormal numbers, flags, traps. */
struct float_control {
    const char *name;
    uint64_t word;
};

/* None on an architecture that is not known here. */
extern const struct float_control float_controls[];
extern const int float_control_count;

/* What a thread begins with. */
extern const uint64_t float_control_default;

uint64_t float_control_read(void);
void float_control_write(uint64_t word);

#endif
