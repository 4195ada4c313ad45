/* A build without MPI. */
#include <stdlib.h>

#include "train/processes.h"

struct processes {
    int count;
};

/* Where a launcher of MPI (Open MPI, Hydra, Slurm) writes how many processes it started. */
static int launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value)
            return atoi(value);
    }
    return 1;
}

bool processes_open(struct processes **processes, struct attn_error *error)
{
    *processes = NULL;
    if (launched() > 1)
        return attn_error_set(error,
                              "started as one of %d processes, but this build has no MPI; it needs "
                              "-Dmpi=enabled",
                              launched());
    *processes = malloc(sizeof **processes);
    if (!*processes)
        return attn_error_memory(error);
    (*processes)->count = 1;
    return true;
}

void processes_close(struct processes *processes)
{
    free(processes);
}

void processes_abort(struct processes *processes)
{
    (void)processes;
}

int processes_rank(const struct processes *processes)
{
    (void)processes;
    return 0;
}

int processes_count(const struct processes *processes)
{
    return processes->count;
}

bool processes_begin_sum(struct processes *processes, float *numbers, int64_t count,
                         struct attn_error *error)
{
    (void)processes, (void)numbers, (void)count, (void)error;
    return true;
}

void processes_wait(struct processes *processes)
{
    (void)processes;
}

void processes_sum(struct processes *processes, double *numbers, int count)
{
    (void)processes, (void)numbers, (void)count;
}

bool processes_agree(struct processes *processes, bool succeeded, struct attn_error *error)
{
    (void)processes, (void)error;
    return succeeded;
}
