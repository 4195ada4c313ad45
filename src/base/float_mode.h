/* The floating-point modes of the running thread: rounding, flush-to-zero, trapped exceptions. A
 * host may have set them to anything; results must not depend on it. */
#ifndef ATTN_BASE_FLOAT_MODE_H
#define ATTN_BASE_FLOAT_MODE_H

#include <stdint.h>

/* Sets the C default (to nearest, subnormal numbers kept, nothing trapped); returns what was. */
uint64_t attn_float_mode_enter(void);

/* Puts back what attn_float_mode_enter returned, sticky flags included. */
void attn_float_mode_leave(uint64_t mode);

#endif
