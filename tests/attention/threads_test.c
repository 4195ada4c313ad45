/* What a host may do around the calls: any number of threads, contexts on threads of its own, a
 * loop of its own, fork, floating-point modes. The bits of every output stay those of one thread in
 * the default modes. */
#include "harness/test.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

#include "../base/float_control.h"
#include "../base/without_threads.h"

enum {
    BATCH = 2,
    HEADS = 4,
    KEY_HEADS = 2,
    QUERIES = 35,
    KEYS = 210,
    D = 40, /* 1/√d is inexact: it depends on the rounding mode */
    FEW = 3,
    MANY_KEYS = 5000, /* shared by threads in attn_decode */
    ROWS = BATCH * HEADS * QUERIES,
    FEW_ROWS = HEADS * FEW
};

/* Of all calls, one after another; laid out as one array. */
struct outputs {
    float o[ROWS * D], stats[ROWS * 2], weights[ROWS * KEYS];
    float few_o[FEW_ROWS * D], few_stats[FEW_ROWS * 2];
    float merged_o[FEW_ROWS * D], merged_stats[FEW_ROWS * 2];
};
enum { OUTPUT_FLOATS = sizeof(struct outputs) / sizeof(float) };

struct inputs {
    struct attention_problem all, few; /* for attn_forward and attn_weights, for attn_decode */
};

static void make_inputs(struct inputs *inputs)
{
    attention_make(&inputs->all,
                   &(struct attention_sizes){BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, D, D}, 1);
    attention_add_bias(&inputs->all, (const int64_t[4]){1, HEADS, QUERIES, KEYS}, 2);
    inputs->all.params.causal = 1;
    inputs->all.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    inputs->all.params.soft_cap = 5;
    attention_make(&inputs->few,
                   &(struct attention_sizes){1, HEADS, KEY_HEADS, FEW, MANY_KEYS, D, D}, 3);
    /* Subnormal numbers come out where they go in: a mode that flushes them shows. */
    for (int64_t j = 0; j < KEYS; j++)
        tensor_set(&inputs->all.v, 0, 0, j, 0, 0x1.8p-130f);
    for (int64_t j = 0; j < MANY_KEYS; j++)
        tensor_set(&inputs->few.v, 0, 0, j, 0, 0x1.8p-130f);
}

static struct outputs *make_outputs(void)
{
    return (struct outputs *)(void *)guarded_floats(OUTPUT_FLOATS, GUARD_BEHIND);
}

/* The first status that is no success. Allocates nothing of the harness: any thread may call it. */
static attn_status call_all(attn_context *context, const struct inputs *inputs,
                            struct outputs *outputs)
{
    const struct attention_problem *all = &inputs->all, *few = &inputs->few;
    attn_tensor o = attn_tensor_packed(outputs->o, ATTN_F32, BATCH, HEADS, QUERIES, D);
    attn_tensor stats = attn_tensor_packed(outputs->stats, ATTN_F32, BATCH, HEADS, QUERIES, 2);
    attn_tensor weights =
        attn_tensor_packed(outputs->weights, ATTN_F32, BATCH, HEADS, QUERIES, KEYS);
    attn_tensor few_o = attn_tensor_packed(outputs->few_o, ATTN_F32, 1, HEADS, FEW, D);
    attn_tensor few_stats = attn_tensor_packed(outputs->few_stats, ATTN_F32, 1, HEADS, FEW, 2);
    attn_tensor merged_o = attn_tensor_packed(outputs->merged_o, ATTN_F32, 1, HEADS, FEW, D);
    attn_tensor merged_stats =
        attn_tensor_packed(outputs->merged_stats, ATTN_F32, 1, HEADS, FEW, 2);
    attn_tensor part_o = tensor_part(&o, 0, 0, 1), part_stats = tensor_part(&stats, 0, 0, 1);
    part_o = tensor_part(&part_o, 2, QUERIES - FEW, FEW);
    part_stats = tensor_part(&part_stats, 2, QUERIES - FEW, FEW);

    attn_status status = attn_forward(context, &all->params, &all->q, &all->k, &all->v, &o, &stats);
    if (status == ATTN_SUCCESS)
        status = attn_weights(context, &all->params, &all->q, &all->k, &stats, NULL, &weights);
    if (status == ATTN_SUCCESS)
        status = attn_decode(context, &few->params, &few->q, &few->k, &few->v, &few_o, &few_stats);
    if (status == ATTN_SUCCESS)
        status =
            attn_merge(context, &part_o, &part_stats, &few_o, &few_stats, &merged_o, &merged_stats);
    return status;
}

/* By one thread in the default modes. */
static const struct outputs *expected_outputs(attn_isa isa, const struct inputs *inputs)
{
    struct outputs *expected = make_outputs();
    attn_context *context = isa_context(isa, 1);
    CHECK_EQUAL(call_all(context, inputs, expected), ATTN_SUCCESS);
    attn_context_destroy(context);
    return expected;
}

static void check_same(const struct outputs *actual, const struct outputs *expected)
{
    CHECK_SAME_BITS(actual->o, expected->o, COUNT(actual->o));
    CHECK_SAME_BITS(actual->stats, expected->stats, COUNT(actual->stats));
    CHECK_SAME_BITS(actual->weights, expected->weights, COUNT(actual->weights));
    CHECK_SAME_BITS(actual->few_o, expected->few_o, COUNT(actual->few_o));
    CHECK_SAME_BITS(actual->few_stats, expected->few_stats, COUNT(actual->few_stats));
    CHECK_SAME_BITS(actual->merged_o, expected->merged_o, COUNT(actual->merged_o));
    CHECK_SAME_BITS(actual->merged_stats, expected->merged_stats, COUNT(actual->merged_stats));
}

static void any_number_of_threads(attn_isa isa)
{
    struct inputs inputs;
    make_inputs(&inputs);
    const struct outputs *expected = expected_outputs(isa, &inputs);
    static const int counts[] = {2, 3, 4, 5, 6, 16, 33};
    for (size_t i = 0; i < COUNT(counts); i++) {
        if (!test_takes_one_in(4))
            continue;
        attn_context *context = isa_context(isa, counts[i]);
        for (int round = 0; round < 2; round++) {
            struct outputs *outputs = make_outputs();
            test_context("%d threads, round %d", counts[i], round);
            CHECK_EQUAL(call_all(context, &inputs, outputs), ATTN_SUCCESS);
            check_same(outputs, expected);
        }
        attn_context_destroy(context);
    }
}

enum { HOST_THREADS = 4, ROUNDS = 3 };

static int rounds(void)
{
    return test_is_reduced() ? 1 : ROUNDS;
}

/* What one thread of the host does with contexts of its own. */
struct host_thread {
    const struct inputs *inputs;
    struct outputs *outputs[ROUNDS];
    attn_status statuses[ROUNDS];
    attn_isa isa;
    int threads;
};

static void *use_contexts(void *argument)
{
    struct host_thread *thread = argument;
    attn_context *lasting = isa_context(thread->isa, thread->threads);
    for (int round = 0; round < rounds(); round++) {
        /* The first round's context is made and ended while others work. */
        attn_context *own = round == 0 ? isa_context(thread->isa, thread->threads) : NULL;
        thread->statuses[round] =
            call_all(own ? own : lasting, thread->inputs, thread->outputs[round]);
        attn_context_destroy(own);
    }
    attn_context_destroy(lasting);
    return NULL;
}

static void contexts_on_many_threads_of_the_host(attn_isa isa)
{
    struct inputs inputs;
    make_inputs(&inputs);
    const struct outputs *expected = expected_outputs(isa, &inputs);
    struct host_thread threads[HOST_THREADS];
    pthread_t made[HOST_THREADS];
    for (int n = 0; n < HOST_THREADS; n++) {
        threads[n] = (struct host_thread){.inputs = &inputs, .isa = isa, .threads = 1 + n % 3};
        for (int round = 0; round < rounds(); round++)
            threads[n].outputs[round] = make_outputs();
    }
    for (int n = 0; n < HOST_THREADS; n++)
        if (pthread_create(&made[n], NULL, use_contexts, &threads[n]) != 0)
            test_bail_out("no thread");
    for (int n = 0; n < HOST_THREADS; n++)
        pthread_join(made[n], NULL);
    for (int n = 0; n < HOST_THREADS; n++)
        for (int round = 0; round < rounds(); round++) {
            test_context("thread %d, round %d", n, round);
            CHECK_EQUAL(threads[n].statuses[round], ATTN_SUCCESS);
            check_same(threads[n].outputs[round], expected);
        }
}

/* A host's loop over threads that it makes for each call, each with modes of its own; items go from
 * the last to the first. */
enum { LOOP_THREADS = 3 };

struct loop {
    pthread_mutex_t mutex;
    int64_t left, calls;
    void (*body)(void *state, int64_t item, int thread);
    void *state;
};

struct loop_thread {
    struct loop *loop;
    int number;
};

static void *take_items(void *argument)
{
    struct loop_thread *thread = argument;
    struct loop *loop = thread->loop;
    uint64_t before = float_control_read();
    if (float_control_count)
        float_control_write(float_controls[thread->number].word);
    for (;;) {
        pthread_mutex_lock(&loop->mutex);
        int64_t item = --loop->left;
        pthread_mutex_unlock(&loop->mutex);
        if (item < 0)
            break;
        loop->body(loop->state, item, thread->number);
    }
    float_control_write(before);
    return NULL;
}

static void loop_of_the_host(void *user, int64_t items,
                             void (*body)(void *state, int64_t item, int thread), void *state)
{
    struct loop *loop = user;
    loop->calls++;
    loop->left = items;
    loop->body = body;
    loop->state = state;
    struct loop_thread threads[LOOP_THREADS];
    pthread_t made[LOOP_THREADS];
    for (int n = 0; n < LOOP_THREADS; n++) {
        threads[n] = (struct loop_thread){loop, n};
        if (pthread_create(&made[n], NULL, take_items, &threads[n]) != 0)
            test_bail_out("no thread");
    }
    for (int n = 0; n < LOOP_THREADS; n++)
        pthread_join(made[n], NULL);
}

static void a_loop_of_the_host(attn_isa isa)
{
    struct inputs inputs;
    make_inputs(&inputs);
    const struct outputs *expected = expected_outputs(isa, &inputs);
    struct loop loop = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = LOOP_THREADS;
    options.parallel_for = loop_of_the_host;
    options.parallel_user = &loop;
    attn_context *context;
    CHECK_EQUAL(attn_context_create(&context, &options), ATTN_SUCCESS);
    CHECK_EQUAL(attn_context_threads(context), LOOP_THREADS);
    struct outputs *outputs = make_outputs();
    CHECK_EQUAL(call_all(context, &inputs, outputs), ATTN_SUCCESS);
    CHECK(loop.calls >= 3); /* forward, weights, decode */
    check_same(outputs, expected);
    attn_context_destroy(context);
}

/* 0 iff the calls in this child give the same bits with the context; ends it. */
static int work_in_child(attn_context *context, const struct inputs *inputs,
                         struct outputs *outputs, const struct outputs *expected)
{
    memset(outputs, 0xff, sizeof *outputs);
    bool same = call_all(context, inputs, outputs) == ATTN_SUCCESS &&
                memcmp(outputs, expected, sizeof *outputs) == 0;
    attn_context_destroy(context);
    return !same;
}

static void a_child_after_fork(attn_isa isa)
{
    struct inputs inputs;
    make_inputs(&inputs);
    const struct outputs *expected = expected_outputs(isa, &inputs);
    struct outputs *outputs = make_outputs();
    attn_context *context = isa_context(isa, 3), *unused = isa_context(isa, 3);
    CHECK_EQUAL(call_all(context, &inputs, outputs), ATTN_SUCCESS);
    check_same(outputs, expected);

    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* a child that hangs dies of it */
        int failed = work_in_child(context, &inputs, outputs, expected) |
                     work_in_child(unused, &inputs, outputs, expected) << 1;
        if (!WITHOUT_THREADS_AFTER_FORK)
            failed |= work_in_child(isa_context(isa, 3), &inputs, outputs, expected) << 2;
        _exit(failed);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);

    CHECK_EQUAL(call_all(context, &inputs, outputs), ATTN_SUCCESS);
    check_same(outputs, expected);
    attn_context_destroy(context);
    attn_context_destroy(unused);
}

static void floating_point_modes_of_the_host(attn_isa isa)
{
    if (float_control_count == 0) {
        test_skip("floating-point modes of this architecture are not known");
        return;
    }
    struct inputs inputs;
    make_inputs(&inputs);
    const struct outputs *expected = expected_outputs(isa, &inputs);
    for (int threads = 1; threads <= 2; threads++) {
        attn_context *context = isa_context(isa, threads);
        for (int i = 0; i < float_control_count; i++) {
            if (!test_takes_one_in(5))
                continue;
            struct outputs *outputs = make_outputs();
            test_context("%d threads, %s", threads, float_controls[i].name);
            float_control_write(float_controls[i].word);
            uint64_t before = float_control_read();
            attn_status status = call_all(context, &inputs, outputs);
            uint64_t after = float_control_read();
            float_control_write(float_control_default);
            CHECK_EQUAL(status, ATTN_SUCCESS);
            CHECK(after == before);
            check_same(outputs, expected);
        }
        attn_context_destroy(context);
    }
}

int main(void)
{
    isa_each("any number of threads gives the same bits", any_number_of_threads);
    isa_each("contexts on many threads of the host", contexts_on_many_threads_of_the_host);
    isa_each("a loop of the host", a_loop_of_the_host);
    isa_each("a child after fork", a_child_after_fork);
    isa_each("floating-point modes of the host", floating_point_modes_of_the_host);
    return test_finish();
}
