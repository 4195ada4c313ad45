/* A build with MPI. Its calls are not asked whether they succeeded: MPI's default is that one that
 * fails ends all processes with a message of its own. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "train/processes.h"

/* Numbers of one reduction: its count is an int, and short ones get under way sooner. */
enum { PIECE = 1 << 22 };

struct processes {
    bool joined; /* MPI is initialised */
    int rank, count;
    MPI_Request *requests; /* sums begun and not waited for */
    int request_count, request_capacity;
};

/* MPI starts a process of its own where nobody launched one, which takes its time and a network: it
 * is left alone there. Open MPI, PMIx, Hydra and Slurm tell what they launched. */
static bool is_launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                            "PMI_FD"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

bool processes_open(struct processes **processes, struct attn_error *error)
{
    *processes = calloc(1, sizeof **processes);
    if (!*processes)
        return attn_error_memory(error);
    (*processes)->count = 1;
    if (!is_launched())
        return true;
    /* Threads of a layer call no MPI. */
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    (*processes)->joined = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &(*processes)->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &(*processes)->count);
    return true;
}

void processes_close(struct processes *processes)
{
    if (!processes)
        return;
    if (processes->joined)
        MPI_Finalize();
    free(processes->requests);
    free(processes);
}

void processes_abort(struct processes *processes)
{
    if (processes->count > 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

int processes_rank(const struct processes *processes)
{
    return processes->rank;
}

int processes_count(const struct processes *processes)
{
    return processes->count;
}

static bool reserve_requests(struct processes *processes, int64_t more, struct attn_error *error)
{
    int64_t needed = processes->request_count + more;
    if (needed <= processes->request_capacity)
        return true;
    int64_t capacity = 2 * needed;
    MPI_Request *grown =
        realloc(processes->requests, (size_t)capacity * sizeof *processes->requests);
    if (!grown)
        return attn_error_memory(error);
    processes->requests = grown;
    processes->request_capacity = (int)capacity;
    return true;
}

bool processes_begin_sum(struct processes *processes, float *numbers, int64_t count,
                         struct attn_error *error)
{
    if (processes->count == 1)
        return true;
    if (!reserve_requests(processes, count / PIECE + 1, error))
        return false;
    for (int64_t begin = 0; begin < count; begin += PIECE) {
        int64_t left = count - begin;
        MPI_Iallreduce(MPI_IN_PLACE, numbers + begin, (int)(left < PIECE ? left : PIECE), MPI_FLOAT,
                       MPI_SUM, MPI_COMM_WORLD, &processes->requests[processes->request_count++]);
    }
    /* Without a thread of its own MPI moves nothing but while it is called. */
    int done;
    MPI_Testall(processes->request_count, processes->requests, &done, MPI_STATUSES_IGNORE);
    return true;
}

void processes_wait(struct processes *processes)
{
    if (processes->request_count > 0)
        MPI_Waitall(processes->request_count, processes->requests, MPI_STATUSES_IGNORE);
    processes->request_count = 0;
}

void processes_sum(struct processes *processes, double *numbers, int count)
{
    if (processes->count > 1)
        MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

bool processes_agree(struct processes *processes, bool succeeded, struct attn_error *error)
{
    if (processes->count == 1)
        return succeeded;
    int first = succeeded ? processes->count : processes->rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == processes->count)
        return true;
    struct attn_error fault = *error;
    MPI_Bcast(fault.message, sizeof fault.message, MPI_CHAR, first, MPI_COMM_WORLD);
    *error = fault;
    return false;
}
