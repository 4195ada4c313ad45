#include "bench_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/isa_name.h"
#include "base/memory.h"
#include "bench_problem.h"
#include "measure/cache_size.h"
#include "measure/timing.h"

enum { MINIMUM_RUNS = 3, MAXIMUM_RUNS = 200, CACHES_OF_MEMORY = 4 };
static const double case_seconds = 0.7;  /* of runs, where MINIMUM_RUNS take less */
static const double run_seconds = 1e-4;  /* a run repeats short calls so long */
static const double warm_seconds = 1e-2; /* a first call that takes so long is no short one */
/* Of runs, between measures that take about 2 ms and 50 ms. */
static const double seconds_a_peak = 0.02, seconds_a_bandwidth = 0.05;

static bool create_context(attn_context **context, attn_isa isa, int threads,
                           struct attn_error *error)
{
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    switch (attn_context_create(context, &options)) {
    case ATTN_SUCCESS:
        return true;
    case ATTN_ERROR_MEMORY:
        return attn_error_memory(error);
    default: {
        /* The options above are right: what is left to be wrong is the environment. */
        const char *given = getenv("ATTN_ISA");
        return attn_error_set(error, "ATTN_ISA is '%s', but must be " ATTN_ISA_NAMES,
                              given ? given : "");
    }
    }
}

/* Which instruction sets there are is known by asking for each. */
static bool refuse_isa(attn_isa isa, struct attn_error *error)
{
    char names[64] = "";
    size_t used = 0;
    for (int other = 0; other < ATTN_ISA_BEST; other++) {
        attn_context *context;
        if (!attn_isa_is_known((attn_isa)other))
            continue;
        if (!create_context(&context, (attn_isa)other, 1, error))
            return false;
        if (attn_context_isa(context) == (attn_isa)other)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", attn_isa_name((attn_isa)other));
        attn_context_destroy(context);
    }
    return attn_error_set(error,
                          "--isa %s is not to be had here; what build, CPU and ATTN_ISA "
                          "allow is %s",
                          attn_isa_name(isa), names);
}

bool bench_machine_open(struct bench_machine *machine, attn_isa isa, int threads,
                        struct attn_error *error)
{
    if (!create_context(&machine->context, isa, threads, error))
        return false;
    machine->isa = attn_context_isa(machine->context);
    machine->threads = attn_context_threads(machine->context);
    machine->cache = cache_size_last_level("", machine->threads);
    if (isa != ATTN_ISA_BEST && machine->isa != isa)
        return refuse_isa(isa, error);
    if (!attn_parallel_open(&machine->parallel, machine->threads, NULL, NULL,
                            &attn_allocator_default))
        return attn_error_memory(error);
    if (!fma_peak_open(&machine->peak, machine->isa, &machine->parallel))
        return attn_error_set(error, "this build cannot measure the peak of %s",
                              attn_isa_name(machine->isa));
    return true;
}

bool bench_machine_open_bandwidth_of(struct bench_machine *machine, int64_t bytes,
                                     struct attn_error *error)
{
    const int64_t least = (int64_t)machine->threads << 20;
    return read_bandwidth_open(&machine->bandwidth, machine->isa, &machine->parallel,
                               bytes > least ? bytes : least, error);
}

bool bench_machine_open_bandwidth(struct bench_machine *machine, struct attn_error *error)
{
    return bench_machine_open_bandwidth_of(machine, CACHES_OF_MEMORY * machine->cache, error);
}

void bench_machine_close(struct bench_machine *machine)
{
    read_bandwidth_close(&machine->bandwidth);
    if (machine->parallel.threads > 0)
        attn_parallel_close(&machine->parallel, &attn_allocator_default);
    attn_context_destroy(machine->context);
    *machine = (struct bench_machine){0};
}

static bool explain(const struct bench_machine *machine, const struct bench_problem *problem,
                    attn_explanation *explanation, struct attn_error *error)
{
    memset(explanation, 0, sizeof *explanation);
    explanation->size = sizeof *explanation;
    if (attn_explain(machine->context, problem->shape->operation, &problem->params, &problem->q,
                     &problem->k, &problem->v, &problem->o, explanation) == ATTN_SUCCESS)
        return true;
    char name[BENCH_NAME_SIZE];
    bench_case_name(problem->shape, name);
    return attn_error_set(error, "%s: %s", name, attn_message(machine->context));
}

bool bench_explain(const struct bench_machine *machine, const struct bench_case *shape,
                   attn_precision precision, attn_explanation *explanation,
                   struct attn_error *error)
{
    struct bench_problem problem;
    bench_problem_shape(&problem, shape, precision);
    bool done = bench_problem_allocate(&problem, 1, error) &&
                explain(machine, &problem, explanation, error);
    bench_problem_release(&problem);
    return done;
}

typedef attn_status bench_call(attn_context *context, const struct bench_problem *problem);

/* Seconds a call of `calls` calls, each on the next copy of K and V. */
static bool time_calls(const struct bench_machine *machine, struct bench_problem *problem,
                       bench_call *function, int64_t calls, int64_t *turn, double *seconds,
                       struct attn_error *error)
{
    double begin = timing_now();
    for (int64_t call = 0; call < calls; call++) {
        bench_problem_turn(problem, (*turn)++);
        if (function(machine->context, problem) != ATTN_SUCCESS) {
            char name[BENCH_NAME_SIZE];
            bench_case_name(problem->shape, name);
            return attn_error_set(error, "%s: %s", name, attn_message(machine->context));
        }
    }
    *seconds = (timing_now() - begin) / (double)calls;
    return true;
}

/* One call that makes the workspace and brings inputs into caches; then, for a short one, how many
 * calls make a run. */
static bool warm_up(const struct bench_machine *machine, struct bench_problem *problem,
                    int64_t *turn, int64_t *calls, struct attn_error *error)
{
    double seconds = 0;
    *calls = 1;
    if (!time_calls(machine, problem, bench_problem_call, 1, turn, &seconds, error))
        return false;
    if (seconds >= warm_seconds)
        return true;
    for (;; *calls *= 2) {
        if (!time_calls(machine, problem, bench_problem_call, *calls, turn, &seconds, error))
            return false;
        if (seconds * (double)*calls >= run_seconds)
            return true;
    }
}

struct medians {
    double seconds;    /* of a call */
    double of_forward; /* an inspection's, of those of the forward pass beside it; else NaN */
    double machine;    /* GFLOP/s or GB/s */
};

static bool measure(const struct bench_machine *machine, struct bench_problem *problem,
                    struct medians *medians, struct attn_error *error)
{
    bool decodes = problem->shape->operation == ATTN_OPERATION_DECODE;
    double seconds_a_measure = decodes ? seconds_a_bandwidth : seconds_a_peak;
    bool inspects = problem->shape->operation == ATTN_OPERATION_FORWARD_INSPECT;
    double times[MAXIMUM_RUNS], ratios[MAXIMUM_RUNS], measures[MAXIMUM_RUNS + 1];
    size_t runs = 0, measured = 0;
    int64_t turn = 0, calls;
    if (!warm_up(machine, problem, &turn, &calls, error))
        return false;

    double total = 0, since_measure = seconds_a_measure;
    while (runs < MINIMUM_RUNS || (total < case_seconds && runs < MAXIMUM_RUNS)) {
        if (since_measure >= seconds_a_measure) {
            measures[measured++] = decodes ? read_bandwidth_sample(&machine->bandwidth)
                                           : fma_peak_sample(&machine->peak);
            since_measure = 0;
        }
        if (!time_calls(machine, problem, bench_problem_call, calls, &turn, &times[runs], error))
            return false;
        if (inspects) {
            double plain = 0;
            if (!time_calls(machine, problem, bench_problem_call_forward, calls, &turn, &plain,
                            error))
                return false;
            ratios[runs] = times[runs] / plain;
        }
        double seconds = times[runs++] * (double)calls;
        total += seconds;
        since_measure += seconds;
    }
    measures[measured++] =
        decodes ? read_bandwidth_sample(&machine->bandwidth) : fma_peak_sample(&machine->peak);
    *medians =
        (struct medians){timing_median(times, runs), inspects ? timing_median(ratios, runs) : NAN,
                         timing_median(measures, measured)};
    return true;
}

static bool run_problem(const struct bench_machine *machine, struct bench_problem *problem,
                        struct bench_result *result, struct attn_error *error)
{
    const struct bench_case *shape = problem->shape;
    bool decodes = shape->operation == ATTN_OPERATION_DECODE;
    int64_t bytes = bench_case_key_value_bytes(shape);
    int64_t copies = decodes ? (CACHES_OF_MEMORY * machine->cache + bytes - 1) / bytes : 1;
    attn_explanation explanation;
    struct medians medians;
    if (!bench_problem_allocate(problem, copies, error) ||
        !explain(machine, problem, &explanation, error))
        return false;
    if (!bench_problem_fill(machine->context, problem, error) ||
        !measure(machine, problem, &medians, error))
        return false;

    double gflops = bench_case_operations(shape) / medians.seconds * 1e-9;
    double gbps = decodes ? (double)bytes / medians.seconds * 1e-9 : NAN;
    *result = (struct bench_result){
        .milliseconds = medians.seconds * 1e3,
        .gflops = gflops,
        .of_peak = decodes ? NAN : gflops / medians.machine,
        .of_forward = medians.of_forward,
        .gbps = gbps,
        .of_bandwidth = gbps / medians.machine, /* NaN stays NaN */
        .workspace = explanation.workspace,
        .isa = explanation.isa,
        .threads = machine->threads,
    };
    return true;
}

bool bench_run(const struct bench_machine *machine, const struct bench_case *shape,
               attn_precision precision, struct bench_result *result, struct attn_error *error)
{
    struct bench_problem problem;
    bench_problem_shape(&problem, shape, precision);
    bool done = run_problem(machine, &problem, result, error);
    bench_problem_release(&problem);
    return done;
}
