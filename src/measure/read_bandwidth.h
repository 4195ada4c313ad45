/* The most bytes that cores read from memory in a second: the best of several plain loops. One
 * naive loop may read only two thirds of what a core can; which loop is best depends on the CPU. */
#ifndef ATTN_MEASURE_READ_BANDWIDTH_H
#define ATTN_MEASURE_READ_BANDWIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn.h"
#include "base/error.h"
#include "base/parallel.h"
#include "measure/machine_loops.h"

/* A loop: READ_STEP bytes of each of 1 << streams streams in turn. */
struct read_variant {
    int streams; /* the index into machine_loops.read */
    enum read_hint hint;
    int64_t distance; /* bytes that the prefetch is ahead */
    double rate;      /* GB/s when it was tried */
};

enum { READ_VARIANTS = READ_STREAM_COUNT * 5 };

struct read_bandwidth {
    const struct machine_loops *loops;
    const struct attn_parallel *parallel;
    unsigned char *memory;
    int64_t size;
    struct read_variant variants[READ_VARIANTS]; /* the fastest first */
};

/* Takes `size` bytes (at least 1 MiB for each thread) of the memory that contexts work in, fills
 * them and tries each loop on all threads of `parallel` at once, which must stay. `isa` is one that
 * the CPU has. Fails without memory, or where the build has no loop for the ISA. */
bool read_bandwidth_open(struct read_bandwidth *bandwidth, attn_isa isa,
                         const struct attn_parallel *parallel, int64_t size,
                         struct attn_error *error);
void read_bandwidth_close(struct read_bandwidth *bandwidth);

/* GB/s of all threads together: one pass of each of the three loops that were fastest when tried,
 * the best of them. */
double read_bandwidth_sample(const struct read_bandwidth *bandwidth);

/* Says in words which loop was fastest. */
void read_bandwidth_describe(const struct read_bandwidth *bandwidth, char *text, size_t size);

#endif
