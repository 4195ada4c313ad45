#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "host_threads.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* GCC's libgomp defines GOMP_parallel, which a compiler calls for a parallel region; LLVM's and
 * Intel's runtimes export the same. */
typedef void gomp_parallel(void (*region)(void *), void *data, unsigned threads, unsigned flags);
typedef int omp_number(void);

static struct {
    gomp_parallel *parallel;
    omp_number *thread_number, *max_threads;
} runtime;

struct loop {
    void (*body)(void *state, int64_t item, int thread);
    void *state;
    int64_t items;
    _Atomic int64_t next;
};

/* ISO C has no cast from an object's address to a function's; POSIX promises that they agree. */
static void find(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof symbol);
}

bool host_threads_find(void)
{
    if (!runtime.parallel) {
        find("omp_get_thread_num", &runtime.thread_number);
        find("omp_get_max_threads", &runtime.max_threads);
        if (runtime.thread_number && runtime.max_threads)
            find("GOMP_parallel", &runtime.parallel);
    }
    return runtime.parallel != NULL;
}

int host_threads_default(void)
{
    return runtime.max_threads();
}

static void take_items(void *data)
{
    struct loop *loop = data;
    int thread = runtime.thread_number();
    int64_t item;
    while ((item = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed)) < loop->items)
        loop->body(loop->state, item, thread);
}

void host_threads_loop(void *user, int64_t items,
                       void (*body)(void *state, int64_t item, int thread), void *state)
{
    struct loop loop = {.body = body, .state = state, .items = items};
    int threads = *(const int *)user;
    runtime.parallel(take_items, &loop, (unsigned)(items < threads ? items : threads), 0);
}
