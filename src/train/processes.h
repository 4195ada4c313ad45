/* Processes that train one model together: each has all weights and a share of every batch, and
 * gradients are summed over them. With MPI where the build has it (option `mpi`) and mpirun started
 * the process; else one process, for which nothing here does anything.
 *
 * All processes call the functions that wait for each other in the same order. A process that dies,
 * or that MPI cannot reach, ends all of them: that is what MPI does by itself. */
#ifndef ATTN_TRAIN_PROCESSES_H
#define ATTN_TRAIN_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct processes;

/* Joins the others. Refused: a start by mpirun in several processes where the build has no MPI. At
 * most once in the life of a process. */
bool processes_open(struct processes **processes, struct attn_error *error);

/* Leaves; all of them do. NULL is allowed. */
void processes_close(struct processes *processes);

/* Ends all processes at once, with exit status 1: for one that failed where the others wait.
 * Returns only where it is alone. */
void processes_abort(struct processes *processes);

int processes_rank(const struct processes *processes); /* 0..count−1; 0 writes files and prints */
int processes_count(const struct processes *processes);

/* Adds up numbers[count] over all processes, in place and in f32, beside what the caller goes on to
 * do; numbers stay untouched until processes_wait, which waits for all sums begun. Every process
 * has the same sums. */
bool processes_begin_sum(struct processes *processes, float *numbers, int64_t count,
                         struct attn_error *error);
void processes_wait(struct processes *processes);

/* Adds up a few numbers over all processes, in place; waits. */
void processes_sum(struct processes *processes, double *numbers, int count);

/* Whether every process succeeded; waits. Where one did not, all of them return false with the
 * message of the first that failed. */
bool processes_agree(struct processes *processes, bool succeeded, struct attn_error *error);

#endif
