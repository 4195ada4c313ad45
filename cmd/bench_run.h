/* The machine, and a case timed on it. */
#ifndef ATTN_CMD_BENCH_RUN_H
#define ATTN_CMD_BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bench_cases.h"
#include "measure/fma_peak.h"
#include "measure/read_bandwidth.h"

struct bench_machine {
    attn_context *context;
    attn_isa isa;
    int threads;
    int64_t cache; /* bytes that the last-level caches hold */
    struct attn_parallel parallel;
    struct fma_peak peak;
    struct read_bandwidth bandwidth; /* memory is NULL where it was not asked for */
};

/* Start from zeros. `isa` is the one to use, or ATTN_ISA_BEST. Fails where the build, the CPU or
 * ATTN_ISA do not allow it; bench_machine_close is due in any case. */
bool bench_machine_open(struct bench_machine *machine, attn_isa isa, int threads,
                        struct attn_error *error);

/* Prepares the read bandwidth too, which takes some seconds of reading. */
bool bench_machine_open_bandwidth(struct bench_machine *machine, struct attn_error *error);

/* The same over so many bytes, of which caches may hold some, as they may of what is timed. */
bool bench_machine_open_bandwidth_of(struct bench_machine *machine, int64_t bytes,
                                     struct attn_error *error);
void bench_machine_close(struct bench_machine *machine);

/* NaN where a number has no meaning. */
struct bench_result {
    double milliseconds; /* the median */
    double gflops;
    double of_peak; /* fractions of 1 */
    double gbps;
    double of_bandwidth;
    double of_forward; /* time of an inspection over that of the forward pass in the same run */
    int64_t workspace;
    attn_isa isa;
    int threads;
};

/* One warm-up, then runs and measures of the machine in turn, so that both see the same state of
 * it: the FMA peak beside what computes, the read bandwidth (which must be open) beside decode. A
 * result is the median of the runs over the median of the measures. */
bool bench_run(const struct bench_machine *machine, const struct bench_case *shape,
               attn_precision precision, struct bench_result *result, struct attn_error *error);

/* attn_explain's answer for a case. */
bool bench_explain(const struct bench_machine *machine, const struct bench_case *shape,
                   attn_precision precision, attn_explanation *explanation,
                   struct attn_error *error);

#endif
