/* Single elements of every attn_type in memory, read and written as doubles. */
#ifndef ATTN_TESTS_HARNESS_ELEMENT_H
#define ATTN_TESTS_HARNESS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "attn.h"

/* Bytes. */
size_t element_size(attn_type type);

/* Element `index` of data; a boolean is 0 or 1, a byte of ATTN_I8 is itself, without a scale. */
double element_get(attn_type type, const void *data, int64_t index);

/* Writes the stored number nearest to `value`, ties to even; beyond the largest f16 lies infinity,
 * i8 stops at −128 and 127. */
void element_set(attn_type type, void *data, int64_t index, double value);

/* What is left of `value` once it was stored. */
double element_round(attn_type type, double value);

/* How far rounding moves a number of size 1 at most (2⁻²⁴ for f32), and how far one near 0; 0 for
 * types without a fraction. */
double element_roundoff(attn_type type);
double element_smallest_step(attn_type type);

/* Fills elements with a NaN that no computation makes (ATTN_F32: GUARDED_NAN_BITS); types without
 * NaN with bytes 0xA5. */
void element_fill_unwritten(attn_type type, void *data, size_t count);

#endif
