/* The two loops that say what a machine gives, once for each ISA that the build has. */
#ifndef ATTN_MEASURE_MACHINE_LOOPS_H
#define ATTN_MEASURE_MACHINE_LOOPS_H

#include <stdint.h>

#include "attn.h"

/* Bytes that a read loop takes from each stream in turn. */
enum { READ_STEP = 256 };

/* How far the loop asks for memory ahead of its reads. */
enum read_hint {
    READ_HINT_NONE,
    READ_HINT_KEEP, /* prefetch into all caches (x86: T0) */
    READ_HINT_ONCE, /* prefetch what is read once (x86: NTA) */
    READ_HINT_COUNT
};

enum { READ_STREAM_COUNT = 4 }; /* 1, 2, 4 and 8 streams */

/* Reads `steps` · READ_STEP bytes of each stream; stream s begins at memory + s · stride.
 * Prefetches `distance` bytes ahead, also beyond the end, where that has no effect. Returns a
 * number that depends on every byte. */
typedef uint64_t read_loop(const unsigned char *memory, int64_t stride, int64_t steps,
                           int64_t distance);

struct machine_loops {
    /* Multiplies and adds in registers only; operations a round count both. Returns a number that
     * depends on every operation, and is finite. */
    float (*multiply_add)(int64_t rounds);
    int64_t operations_a_round;
    read_loop *read[READ_STREAM_COUNT][READ_HINT_COUNT]; /* of 1 << first index streams */
};

/* NULL where the build has no loops for this ISA. Only an ISA that attn_cpu_best_isa allows may be
 * run. */
const struct machine_loops *machine_loops_for(attn_isa isa);

extern const struct machine_loops machine_loops_scalar;
#if defined(__x86_64__)
extern const struct machine_loops machine_loops_avx2;
extern const struct machine_loops machine_loops_avx512;
#elif defined(__aarch64__)
extern const struct machine_loops machine_loops_neon;
#endif

#endif
