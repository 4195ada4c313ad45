/* Buffers between pages that cannot be touched. One end of the data lies flush against its guard
 * page, the other as close as the page size lets it; the bytes in between are checked for writes
 * when the buffer is released. test_run releases all of them; a long loop does it itself. */
#ifndef ATTN_TESTS_HARNESS_GUARDED_H
#define ATTN_TESTS_HARNESS_GUARDED_H

#include <stddef.h>
#include <stdint.h>

enum guard_side {
    GUARD_BEHIND, /* the data ends at a guard page (as nearly as its alignment allows) */
    GUARD_BEFORE  /* the data begins at one */
};

/* What floats are filled with: a quiet NaN with a payload of its own, so that a value that was
 * never written can be told from one that was computed. */
#define GUARDED_NAN_BITS UINT32_C(0x7fcdc0de)

void *guarded_bytes(size_t bytes, size_t alignment, enum guard_side side);
float *guarded_floats(size_t count, enum guard_side side);
/* Aligned as a panel of kernel/kernel.h. */
float *guarded_panel(size_t count, enum guard_side side);
double *guarded_doubles(size_t count);

/* `bytes` of address space without memory; guarded_touch makes a part of it usable (whole pages,
 * zeros). */
void *guarded_address_space(size_t bytes);
void guarded_touch(void *begin, size_t bytes);

void guarded_release_all(void);

#endif
