/* Loops over threads: every item once, thread numbers, order, modes, missing memory and threads. */
#include "base/parallel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmocka_test.h"
#include "float_control.h"
#include "parallel_run.h"

static void every_item_is_done_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 100, MOST_ITEMS, -1};
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        struct attn_parallel parallel;
        parallel_run_open(&parallel, threads);
        assert_int_equal(parallel.threads, parallel_run_has_threads() ? threads : 1);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            struct parallel_run run;
            parallel_run_begin(&run, parallel.threads);
            attn_parallel_run(&parallel, counts[i], parallel_run_item, &run);
            assert_true(parallel_run_is_complete(&run, counts[i]));
        }
        parallel_run_close(&parallel);
    }
}

/* Threads that look for work without sleeping, that just fall asleep, and that sleep. */
static void runs_follow_each_other_at_any_pace(void **state)
{
    (void)state;
    static const long pauses[] = {0, 10000, 30000, 40000, 100000, 1000000}; /* nanoseconds */
    struct attn_parallel parallel;
    parallel_run_open(&parallel, 3);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++)
        for (int round = 0; round < 200; round++) {
            struct parallel_run run;
            parallel_run_begin(&run, 3);
            attn_parallel_run(&parallel, 1 + round % 5, parallel_run_item, &run);
            assert_true(parallel_run_is_complete(&run, 1 + round % 5));
            if (pauses[i])
                nanosleep(&(struct timespec){.tv_nsec = pauses[i]}, NULL);
        }
    parallel_run_close(&parallel);
}

/* Waits for the others of its run, not for ever: two items get to the end only side by side. */
struct meeting {
    atomic_int present;
    atomic_int missed;
};

static void meet(void *state, int64_t item, int thread)
{
    (void)item, (void)thread;
    struct meeting *meeting = state;
    meeting->present++;
    time_t end = time(NULL) + 20;
    while (meeting->present < 2 && time(NULL) < end)
        sched_yield();
    if (meeting->present < 2)
        meeting->missed++;
}

static void two_threads_work_at_once(void **state)
{
    (void)state;
    if (!parallel_run_has_threads())
        skip_because("a build without threads");
    struct attn_parallel parallel;
    parallel_run_open(&parallel, 2);
    for (int round = 0; round < 50; round++) {
        struct meeting meeting = {0};
        attn_parallel_run(&parallel, 2, meet, &meeting);
        assert_int_equal(meeting.missed, 0);
    }
    parallel_run_close(&parallel);
}

struct results {
    int64_t value[MOST_ITEMS]; /* written without atomics: the end of a run orders them */
};

static void write_result(void *state, int64_t item, int thread)
{
    (void)thread;
    struct results *results = state;
    results->value[item] += item;
}

static void results_are_there_when_a_run_ends(void **state)
{
    (void)state;
    static struct results results;
    struct attn_parallel parallel;
    parallel_run_open(&parallel, 4);
    for (int round = 1; round <= 100; round++) {
        attn_parallel_run(&parallel, MOST_ITEMS, write_result, &results);
        for (int64_t i = 0; i < MOST_ITEMS; i++)
            assert_true(results.value[i] == round * i);
    }
    parallel_run_close(&parallel);
}

static void modes_are_the_default_inside_and_unchanged_outside(void **state)
{
    (void)state;
    if (float_control_count == 0)
        skip_because("floating-point modes of this architecture are not known");
    for (int threads = 1; threads <= 3; threads++) {
        struct attn_parallel parallel;
        /* Threads inherit the modes of the one that makes them. */
        float_control_write(float_controls[0].word);
        parallel_run_open(&parallel, threads);
        for (int i = 0; i < float_control_count; i++) {
            struct parallel_run run;
            parallel_run_begin(&run, threads);
            float_control_write(float_controls[i].word);
            uint64_t before = float_control_read();
            attn_parallel_run(&parallel, 100, parallel_run_item, &run);
            uint64_t after = float_control_read();
            float_control_write(float_control_default);
            assert_true(after == before);
            assert_true(parallel_run_is_complete(&run, 100));
        }
        parallel_run_close(&parallel);
    }
}

/* An allocator that gives `left` blocks, and counts those that are alive. */
struct counted {
    int left, alive;
};

static void *allocate_counted(void *user, size_t bytes, size_t alignment)
{
    struct counted *counted = user;
    void *memory = NULL;
    if (counted->left == 0 || posix_memalign(&memory, alignment, bytes) != 0)
        return NULL;
    counted->left--;
    counted->alive++;
    memset(memory, 0xff, bytes); /* what a recycled block may hold */
    return memory;
}

static void release_counted(void *user, void *memory)
{
    struct counted *counted = user;
    counted->alive--;
    free(memory);
}

static void memory_may_be_missing(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        struct counted counted = {.left = left};
        struct attn_allocator allocator = {allocate_counted, release_counted, &counted};
        struct attn_parallel parallel;
        if (attn_parallel_open(&parallel, 3, NULL, NULL, &allocator)) {
            struct parallel_run run;
            parallel_run_begin(&run, parallel.threads);
            attn_parallel_run(&parallel, 10, parallel_run_item, &run);
            assert_true(parallel_run_is_complete(&run, 10));
            attn_parallel_close(&parallel, &allocator);
        } else {
            assert_int_equal(left, 0);
        }
        assert_int_equal(counted.alive, 0);
    }
}

/* The linker sends pthread_create here (see meson.build). */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
static atomic_int creations_left = -1; /* before one fails; negative: none does */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    if (creations_left == 0)
        return EAGAIN;
    if (creations_left > 0)
        creations_left--;
    return __real_pthread_create(thread, attributes, body, argument);
}

static void threads_may_be_missing(void **state)
{
    (void)state;
    if (strcmp(attn_parallel_runtime(), "POSIX threads") != 0)
        skip_because("this runtime starts no threads for a context");
    for (int left = 0; left <= 3; left++) {
        struct counted counted = {.left = 10};
        struct attn_allocator allocator = {allocate_counted, release_counted, &counted};
        struct attn_parallel parallel;
        creations_left = left;
        bool opened = attn_parallel_open(&parallel, 4, NULL, NULL, &allocator);
        creations_left = -1;
        assert_int_equal(opened, left == 3);
        if (opened)
            attn_parallel_close(&parallel, &allocator);
        assert_int_equal(counted.alive, 0);
    }
}

static void the_number_of_threads_of_the_process(void **state)
{
    (void)state;
    int before = attn_parallel_default_threads();
    assert_true(before >= 1);
    attn_parallel_set_threads(3);
    assert_int_equal(attn_parallel_default_threads(), parallel_run_has_threads() ? 3 : 1);
    attn_parallel_set_threads(before);
    assert_int_equal(attn_parallel_default_threads(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once),
        cmocka_unit_test(runs_follow_each_other_at_any_pace),
        cmocka_unit_test(two_threads_work_at_once),
        cmocka_unit_test(results_are_there_when_a_run_ends),
        cmocka_unit_test(modes_are_the_default_inside_and_unchanged_outside),
        cmocka_unit_test(memory_may_be_missing),
        cmocka_unit_test(threads_may_be_missing),
        cmocka_unit_test(the_number_of_threads_of_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
