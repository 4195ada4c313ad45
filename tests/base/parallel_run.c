#include "parallel_run.h"

#include <string.h>

#include "cmocka_test.h"
#include "float_control.h"

void parallel_run_begin(struct parallel_run *run, int threads)
{
    memset(run, 0, sizeof *run);
    run->threads = threads;
    for (int i = 0; i < MOST_THREADS; i++)
        run->previous[i] = -1;
}

void parallel_run_item(void *state, int64_t item, int thread)
{
    struct parallel_run *run = state;
    if (thread < 0 || thread >= run->threads || item < 0 || item >= MOST_ITEMS) {
        run->faults++;
        return;
    }
    if (run->inside[thread]++ != 0 || run->previous[thread] >= item)
        run->faults++;
    run->previous[thread] = item;
    if (float_control_count && float_control_read() != float_control_default)
        run->faults++;
    run->times[item]++;
    run->inside[thread]--;
}

bool parallel_run_is_complete(struct parallel_run *run, int64_t items)
{
    for (int64_t i = 0; i < MOST_ITEMS; i++)
        if (run->times[i] != (i < items))
            return false;
    return run->faults == 0;
}

bool parallel_run_has_threads(void)
{
    return strcmp(attn_parallel_runtime(), "none") != 0;
}

void parallel_run_open(struct attn_parallel *parallel, int threads)
{
    assert_true(attn_parallel_open(parallel, threads, NULL, NULL, &attn_allocator_default));
}

void parallel_run_close(struct attn_parallel *parallel)
{
    attn_parallel_close(parallel, &attn_allocator_default);
}
