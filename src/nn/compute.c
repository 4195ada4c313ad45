#include "nn/compute.h"

#include <stdlib.h>

#ifdef ATTN_OPENBLAS
#include <cblas.h>
#endif

#include "attention/isa_name.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "kernel/kernel.h"

bool compute_create_for(struct compute *compute, attn_isa isa, int threads,
                        struct attn_error *error)
{
    *compute = (struct compute){0};
    if (threads < 1)
        return attn_error_set(error, "%d threads asked for, at least 1 is needed", threads);

    attn_options options;
    attn_options_init(&options);
    options.threads = threads;
    options.isa = isa;
    switch (attn_context_create(&compute->attention, &options)) {
    case ATTN_SUCCESS:
        break;
    case ATTN_ERROR_MEMORY:
        return attn_error_memory(error);
    default: {
        /* The options above are right: what is left to be wrong is the environment. */
        const char *given = getenv("ATTN_ISA");
        return attn_error_set(error, "ATTN_ISA is '%s', but must be " ATTN_ISA_NAMES,
                              given ? given : "");
    }
    }

    compute->kernels = attn_kernels_for(attn_context_isa(compute->attention));
#ifdef ATTN_OPENBLAS
    /* Its threads are those of OpenMP or its own, whatever libattn's are. */
    openblas_set_num_threads(threads);
#endif
    attn_parallel_set_threads(threads);
    return true;
}

bool compute_create(struct compute *compute, int threads, struct attn_error *error)
{
    return compute_create_for(compute, ATTN_ISA_BEST, threads, error);
}

void compute_enter(const struct compute *compute)
{
    attn_parallel_set_threads(attn_context_threads(compute->attention));
}

double compute_attention_begin(const struct compute *compute)
{
    return compute->attention_seconds ? attn_clock() : 0.0;
}

bool compute_attention_end(const struct compute *compute, double began, attn_status status,
                           struct attn_error *error)
{
    if (compute->attention_seconds)
        *compute->attention_seconds += attn_clock() - began;
    return status == ATTN_SUCCESS ||
           attn_error_set(error, "attention: %s", attn_message(compute->attention));
}

void compute_destroy(struct compute *compute)
{
    attn_context_destroy(compute->attention);
    *compute = (struct compute){0};
}
