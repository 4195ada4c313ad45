/* The most multiply-adds in f32 that cores do: loops in registers, with nothing to load or store.
 */
#ifndef ATTN_MEASURE_FMA_PEAK_H
#define ATTN_MEASURE_FMA_PEAK_H

#include <stdbool.h>

#include "attn.h"
#include "base/parallel.h"
#include "measure/machine_loops.h"

struct fma_peak {
    const struct machine_loops *loops;
    const struct attn_parallel *parallel;
    int64_t rounds; /* of the loop in one item of work */
};

/* Prepares to measure this ISA on all threads of `parallel` at once, which must stay. `isa` is one
 * that the CPU has. False where the build has no loop for it. On ATTN_ISA_SCALAR a multiply-add is
 * a multiplication and an addition, which plain C does not fuse. */
bool fma_peak_open(struct fma_peak *peak, attn_isa isa, const struct attn_parallel *parallel);

/* GFLOP/s of all threads together, a multiply-add being two operations: the best of a few runs that
 * take about 2 ms in all, so that a short disturbance does not count. */
double fma_peak_sample(const struct fma_peak *peak);

#endif
