/* Loops over threads in a host that has a loop of its own, forks, or has threads of its own. */
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_test.h"
#include "float_control.h"
#include "parallel_run.h"
#include "without_threads.h"

/* A host whose two threads have the modes of this file, and which goes through items backwards. */
struct host {
    int loops;
    bool modes_kept;
    pthread_mutex_t mutex;
    int64_t left;
    void (*body)(void *state, int64_t item, int thread);
    void *state;
};

struct host_thread {
    struct host *host;
    int number;
};

static void *host_work(void *argument)
{
    struct host_thread *thread = argument;
    struct host *host = thread->host;
    if (float_control_count)
        float_control_write(float_controls[float_control_count - 1].word);
    for (;;) {
        pthread_mutex_lock(&host->mutex);
        int64_t item = --host->left;
        pthread_mutex_unlock(&host->mutex);
        if (item < 0)
            break;
        uint64_t before = float_control_read();
        host->body(host->state, item, thread->number);
        if (float_control_read() != before)
            host->modes_kept = false;
    }
    return NULL;
}

static void host_loop(void *user, int64_t items,
                      void (*body)(void *state, int64_t item, int thread), void *state)
{
    struct host *host = user;
    host->loops++;
    host->left = items;
    host->body = body;
    host->state = state;
    struct host_thread threads[2] = {{host, 0}, {host, 1}};
    pthread_t made;
    if (pthread_create(&made, NULL, host_work, &threads[1]) != 0)
        abort();
    uint64_t before = float_control_read();
    host_work(&threads[0]);
    float_control_write(before);
    pthread_join(made, NULL);
}

/* As `struct parallel_run`, but for the order of items. */
static void do_item_in_any_order(void *state, int64_t item, int thread)
{
    struct parallel_run *run = state;
    if (thread >= 0 && thread < run->threads)
        run->previous[thread] = -1;
    parallel_run_item(state, item, thread);
}

static void a_host_loop_does_all_work(void **state)
{
    (void)state;
    struct host host = {.modes_kept = true, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct attn_parallel parallel;
    assert_true(attn_parallel_open(&parallel, 2, host_loop, &host, &attn_allocator_default));
    assert_int_equal(parallel.threads, 2);
    for (int round = 1; round <= 10; round++) {
        struct parallel_run run;
        parallel_run_begin(&run, 2);
        attn_parallel_run(&parallel, 100, do_item_in_any_order, &run);
        assert_int_equal(host.loops, round);
        assert_true(parallel_run_is_complete(&run, 100));
        assert_true(host.modes_kept);
    }
    struct parallel_run run;
    parallel_run_begin(&run, 2);
    attn_parallel_run(&parallel, 0, parallel_run_item, &run);
    assert_int_equal(host.loops, 10);
    parallel_run_close(&parallel);
}

/* Exit status of what a child does; a child that hangs dies of its alarm. */
static int in_child(int (*body)(struct attn_parallel *parallel), struct attn_parallel *parallel)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        _exit(body(parallel));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* 0 iff all is as it should be, and on one thread where that is asked for. */
static int run_in_child(struct attn_parallel *parallel, bool alone)
{
    struct parallel_run run;
    for (int round = 0; round < 3; round++) {
        parallel_run_begin(&run, alone ? 1 : parallel->threads);
        attn_parallel_run(parallel, 100, parallel_run_item, &run);
        if (!parallel_run_is_complete(&run, 100))
            return 1;
    }
    return 0;
}

static int use_what_the_parent_made(struct attn_parallel *parallel)
{
    int failed = run_in_child(parallel, true);
    parallel_run_close(parallel);
    return failed;
}

static void a_child_after_fork_works(void **state)
{
    (void)state;
    struct attn_parallel parallel;
    parallel_run_open(&parallel, 3);
    assert_int_equal(in_child(use_what_the_parent_made, &parallel), 0);
    struct parallel_run run;
    parallel_run_begin(&run, 3);
    attn_parallel_run(&parallel, 100, parallel_run_item, &run);
    assert_int_equal(in_child(use_what_the_parent_made, &parallel), 0);
    /* The parent's own go on. */
    parallel_run_begin(&run, 3);
    attn_parallel_run(&parallel, 100, parallel_run_item, &run);
    assert_true(parallel_run_is_complete(&run, 100));
    parallel_run_close(&parallel);
}

static int make_one_in_the_child(struct attn_parallel *parallel)
{
    (void)parallel;
    struct attn_parallel own;
    if (!attn_parallel_open(&own, 3, NULL, NULL, &attn_allocator_default))
        return 2;
    int failed = run_in_child(&own, false);
    parallel_run_close(&own);
    return failed;
}

static int make_one_in_a_child_of_the_child(struct attn_parallel *parallel)
{
    return in_child(make_one_in_the_child, parallel);
}

static void a_child_may_make_its_own(void **state)
{
    (void)state;
    if (WITHOUT_THREADS_AFTER_FORK)
        skip_because("ThreadSanitizer knows no threads of a child after fork");
    /* The first time, where no other test of this process has run a loop. */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(in_child(make_one_in_the_child, NULL), 0);
        assert_int_equal(in_child(make_one_in_a_child_of_the_child, NULL), 0);
        struct attn_parallel parallel;
        parallel_run_open(&parallel, 3);
        struct parallel_run run;
        parallel_run_begin(&run, 3);
        attn_parallel_run(&parallel, 100, parallel_run_item, &run);
        parallel_run_close(&parallel);
    }
}

static int use_the_host_of_the_parent(struct attn_parallel *parallel)
{
    struct host *host = parallel->host_user;
    host->loops = 0;
    int failed = run_in_child(parallel, true);
    return failed || host->loops != 0;
}

static void a_child_leaves_the_threads_of_its_parents_host_alone(void **state)
{
    (void)state;
    struct host host = {.modes_kept = true, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct attn_parallel parallel;
    assert_true(attn_parallel_open(&parallel, 2, host_loop, &host, &attn_allocator_default));
    assert_int_equal(in_child(use_the_host_of_the_parent, &parallel), 0);
    parallel_run_close(&parallel);
}

/* Several host threads, each with its own; and one within a body of another. */
static void run_another(void *state, int64_t item, int thread)
{
    (void)item, (void)thread;
    atomic_int *faults = state;
    struct attn_parallel inner;
    if (!attn_parallel_open(&inner, 2, NULL, NULL, &attn_allocator_default)) {
        ++*faults;
        return;
    }
    struct parallel_run run;
    parallel_run_begin(&run, 2);
    attn_parallel_run(&inner, 50, parallel_run_item, &run);
    parallel_run_close(&inner);
    if (!parallel_run_is_complete(&run, 50))
        ++*faults;
}

static void a_run_within_a_body_of_another(void **state)
{
    (void)state;
    atomic_int faults = 0;
    struct attn_parallel parallel;
    parallel_run_open(&parallel, 3);
    attn_parallel_run(&parallel, 12, run_another, &faults);
    parallel_run_close(&parallel);
    assert_int_equal(faults, 0);
}

static void *open_run_close(void *argument)
{
    for (int round = 0; round < 20; round++)
        run_another(argument, round, 0);
    return NULL;
}

static void many_threads_of_a_host_each_with_its_own(void **state)
{
    (void)state;
    enum { HOST_THREADS = 4 };
    atomic_int faults = 0;
    pthread_t threads[HOST_THREADS];
    for (int i = 0; i < HOST_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_run_close, &faults), 0);
    for (int i = 0; i < HOST_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_may_make_its_own), /* first: see there */
        cmocka_unit_test(a_child_after_fork_works),
        cmocka_unit_test(a_child_leaves_the_threads_of_its_parents_host_alone),
        cmocka_unit_test(a_host_loop_does_all_work),
        cmocka_unit_test(a_run_within_a_body_of_another),
        cmocka_unit_test(many_threads_of_a_host_each_with_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
