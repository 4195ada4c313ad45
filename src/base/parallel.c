#include "base/parallel.h"

#include <unistd.h>

#include "base/float_mode.h"
#include "base/parallel_runtime.h"

void attn_work_take(struct attn_work *work, int thread)
{
    uint64_t mode = attn_float_mode_enter();
    for (;;) {
        int64_t item = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (item >= work->items)
            break;
        work->body(work->state, item, thread);
    }
    attn_float_mode_leave(mode);
}

/* A host's thread may come with any modes, and gets them back after each item: when its turn ends
 * is not known here. */
static void take_item_for_host(void *state, int64_t item, int thread)
{
    const struct attn_work *work = state;
    uint64_t mode = attn_float_mode_enter();
    work->body(work->state, item, thread);
    attn_float_mode_leave(mode);
}

bool attn_parallel_open(struct attn_parallel *parallel, int threads, attn_parallel_loop *host,
                        void *host_user, const struct attn_allocator *allocator)
{
    *parallel = (struct attn_parallel){
        .threads = host ? threads : attn_runtime_threads(threads),
        .host = host,
        .host_user = host_user,
        .process = getpid(),
    };
    return host || attn_runtime_open(&parallel->pool, parallel->threads, allocator);
}

void attn_parallel_close(struct attn_parallel *parallel, const struct attn_allocator *allocator)
{
    if (!parallel->host)
        attn_runtime_close(parallel->pool, parallel->process != getpid(), allocator);
    *parallel = (struct attn_parallel){0};
}

void attn_parallel_run(const struct attn_parallel *parallel, int64_t items,
                       void (*body)(void *state, int64_t item, int thread), void *state)
{
    if (items <= 0)
        return;
    struct attn_work work = {.body = body, .state = state, .items = items};
    int threads = parallel->threads < items ? parallel->threads : (int)items;
    /* fork takes only the thread that calls it along: of a pool, the host's too, nothing but its
     * memory is left in the child. */
    if (threads < 2 || parallel->process != getpid())
        attn_work_take(&work, 0);
    else if (parallel->host)
        parallel->host(parallel->host_user, items, take_item_for_host, &work);
    else
        attn_runtime_run(parallel->pool, threads, &work);
}
