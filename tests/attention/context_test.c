/* Contexts: options, the environment, memory that runs out, threads. */
#include "harness/test.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/isa_name.h"
#include "base/parallel.h"
#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

static void initial_options(const void *argument)
{
    (void)argument;
    attn_options options;
    memset(&options, 0xff, sizeof options);
    attn_options_init(&options);
    CHECK_EQUAL(options.size, sizeof options);
    CHECK_EQUAL(options.threads, 0);
    CHECK_EQUAL(options.isa, ATTN_ISA_BEST);
    CHECK(!options.allocate && !options.release && !options.user);
    CHECK(!options.parallel_for && !options.parallel_user);
}

/* Of the runtime of this build, when so many are asked for. */
static int threads_given(int asked)
{
    return strcmp(attn_parallel_runtime(), "none") == 0 ? 1 : asked;
}

static void refuse(const attn_options *options)
{
    static char place;
    attn_context *context = (attn_context *)(void *)&place;
    CHECK_EQUAL(attn_context_create(&context, options), ATTN_ERROR_ARGUMENT);
    CHECK(context == NULL);
}

static void *allocate_nothing(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

static void release_nothing(void *user, void *memory)
{
    (void)user, (void)memory;
}

static void loop_of_nothing(void *user, int64_t items,
                            void (*body)(void *state, int64_t item, int thread), void *state)
{
    (void)user, (void)items, (void)body, (void)state;
}

static void bad_options(const void *argument)
{
    (void)argument;
    CHECK_EQUAL(attn_context_create(NULL, NULL), ATTN_ERROR_ARGUMENT);
    attn_options good;
    attn_options_init(&good);

    attn_options options = good;
    options.size = 0;
    refuse(&options);
    options.size = sizeof options + 8;
    refuse(&options);
    options.size = offsetof(attn_options, parallel_for) + 4;
    refuse(&options);
    options = good;
    options.threads = -1;
    refuse(&options);
    options = good;
    options.isa = (attn_isa)77;
    refuse(&options);
    options = good;
    options.allocate = allocate_nothing;
    refuse(&options);
    options = good;
    options.release = release_nothing;
    refuse(&options);
    options = good;
    options.parallel_for = loop_of_nothing;
    refuse(&options);
    options.threads = -1;
    refuse(&options);
}

/* Laid out with nothing behind it, so that what the struct of version 0.1 does not have cannot be
 * read. */
static void options_of_an_older_version(const void *argument)
{
    (void)argument;
    attn_options options;
    attn_options_init(&options);
    options.threads = 3;
    options.isa = ATTN_ISA_SCALAR;
    options.size = offsetof(attn_options, parallel_for);
    attn_options *older = guarded_bytes(options.size, sizeof(void *), GUARD_BEHIND);
    memcpy(older, &options, options.size);
    attn_context *context;
    CHECK_EQUAL(attn_context_create(&context, older), ATTN_SUCCESS);
    CHECK_EQUAL(attn_context_isa(context), ATTN_ISA_SCALAR);
    CHECK_EQUAL(attn_context_threads(context), threads_given(3));
    attn_context_destroy(context);
}

static void no_context(const void *argument)
{
    (void)argument;
    attn_context_destroy(NULL);
}

static void settings_of_a_context(const void *argument)
{
    (void)argument;
    attn_context *context;
    CHECK_EQUAL(attn_context_create(&context, NULL), ATTN_SUCCESS);
    CHECK(attn_context_threads(context) >= 1);
    CHECK(strcmp(attn_isa_name(attn_context_isa(context)), "unknown") != 0);
    CHECK_EQUAL(strlen(attn_message(context)), 0);
    attn_context_destroy(context);
    for (int threads = 1; threads < 5; threads++) {
        context = isa_context(ATTN_ISA_BEST, threads);
        CHECK_EQUAL(attn_context_threads(context), threads_given(threads));
        attn_context_destroy(context);
    }
}

static void names_of_isas(const void *argument)
{
    (void)argument;
    CHECK(strcmp(attn_isa_name(ATTN_ISA_SCALAR), "scalar") == 0);
    CHECK(strcmp(attn_isa_name(ATTN_ISA_AVX2), "avx2") == 0);
    CHECK(strcmp(attn_isa_name(ATTN_ISA_AVX512), "avx512") == 0);
    CHECK(strcmp(attn_isa_name(ATTN_ISA_NEON), "neon") == 0);
    CHECK(strcmp(attn_isa_name((attn_isa)77), "unknown") == 0);
    for (int value = 0; value <= ATTN_ISA_BEST; value++) {
        attn_isa isa = (attn_isa)value, found;
        test_context("isa %d", value);
        if (!attn_isa_is_known(isa))
            continue;
        CHECK(isa != ATTN_ISA_BEST);
        CHECK(strstr(ATTN_ISA_NAMES, attn_isa_name(isa)) != NULL);
        CHECK(attn_isa_from_name(attn_isa_name(isa), &found) && found == isa);
    }
    attn_isa left = ATTN_ISA_NEON;
    CHECK(!attn_isa_from_name("unknown", &left) && left == ATTN_ISA_NEON);
}

/* Limits ISAs by the environment, puts back what was there. */
static void with_environment(const char *name, void (*body)(void))
{
    const char *old = getenv("ATTN_ISA");
    char kept[64] = "";
    if (old)
        snprintf(kept, sizeof kept, "%s", old);
    setenv("ATTN_ISA", name, 1);
    body();
    if (old)
        setenv("ATTN_ISA", kept, 1);
    else
        unsetenv("ATTN_ISA");
}

static void refuse_defaults(void)
{
    refuse(NULL);
}

static void expect_scalar(void)
{
    attn_context *context = isa_context(ATTN_ISA_BEST, 1);
    CHECK_EQUAL(attn_context_isa(context), ATTN_ISA_SCALAR);
    attn_context_destroy(context);
}

static void expect_scalar_by_option(void)
{
    attn_context *context = isa_context(ATTN_ISA_SCALAR, 1);
    CHECK_EQUAL(attn_context_isa(context), ATTN_ISA_SCALAR);
    attn_context_destroy(context);
}

static void the_environment_limits_the_isa(const void *argument)
{
    (void)argument;
    with_environment("scalar", expect_scalar);
    with_environment("avx2", expect_scalar_by_option);
    with_environment("AVX2", refuse_defaults);
    with_environment("avx9000", refuse_defaults);
    with_environment("scalar ", refuse_defaults);
}

/* An allocator that fails once `left` allocations are made, and counts what is not yet released. */
struct failing_allocator {
    int64_t left;
    int64_t alive;
    bool misaligned;
};

static void *allocate_some(void *user, size_t bytes, size_t alignment)
{
    struct failing_allocator *allocator = user;
    if (allocator->left == 0)
        return NULL;
    allocator->left--;
    void *memory = NULL;
    if (alignment > 64 || (alignment & (alignment - 1)) != 0)
        allocator->misaligned = true;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) !=
        0)
        return NULL;
    /* What a recycled block may hold. */
    memset(memory, 0xff, bytes);
    allocator->alive++;
    return memory;
}

static void release_some(void *user, void *memory)
{
    struct failing_allocator *allocator = user;
    allocator->alive -= memory != NULL;
    free(memory);
}

enum { QUERIES = 33, KEYS = 130, D = 7 };

/* Both calls with a context whose n-th allocation fails; true when none did. */
static bool try_with_failure(int64_t n, attn_isa isa, const struct attention_problem *problem,
                             const struct attention_result *expected)
{
    struct failing_allocator allocator = {.left = n};
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = 2;
    options.allocate = allocate_some;
    options.release = release_some;
    options.user = &allocator;

    test_context("allocation %d fails", (int)n);
    attn_context *context = NULL;
    attn_status status = attn_context_create(&context, &options);
    bool succeeded = status == ATTN_SUCCESS;
    if (!succeeded) {
        CHECK_EQUAL(status, ATTN_ERROR_MEMORY);
        CHECK(context == NULL);
        CHECK_EQUAL(allocator.alive, 0);
        return false;
    }
    attn_tensor o = tensor_allocate(ATTN_F32, 1, 2, QUERIES, D, LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor stats = tensor_allocate(ATTN_F32, 1, 2, QUERIES, 2, LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor weights =
        tensor_allocate(ATTN_F32, 1, 2, QUERIES, KEYS, LAYOUT_PACKED, GUARD_BEHIND);
    status =
        attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o, &stats);
    if (status == ATTN_SUCCESS) {
        status = attn_weights(context, &problem->params, &problem->q, &problem->k, &stats, NULL,
                              &weights);
    } else {
        CHECK_UNWRITTEN((const float *)o.data, 2 * QUERIES * D);
        CHECK_UNWRITTEN((const float *)stats.data, 2 * QUERIES * 2);
    }
    if (status != ATTN_SUCCESS) {
        CHECK_EQUAL(status, ATTN_ERROR_MEMORY);
        CHECK_CONTAINS(attn_message(context), "memory");
        CHECK_UNWRITTEN((const float *)weights.data, 2 * QUERIES * KEYS);
        succeeded = false;
    }
    /* With memory again the same context does its work. */
    allocator.left = INT64_MAX;
    struct attention_result result;
    attention_solve(context, problem, &result);
    CHECK_SAME_RESULT(&result, expected);
    attn_context_destroy(context);
    CHECK_EQUAL(allocator.alive, 0);
    CHECK(!allocator.misaligned);
    return succeeded;
}

static void every_allocation_may_fail(attn_isa isa)
{
    struct attention_problem problem;
    struct attention_result expected;
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, QUERIES, KEYS, D, D}, 1);
    problem.k = tensor_copy(&problem.k, LAYOUT_TRANSPOSED, GUARD_BEHIND);
    problem.params.causal = 1;
    attn_context *context = isa_context(isa, 2);
    attention_solve(context, &problem, &expected);
    attn_context_destroy(context);
    int64_t n = 0;
    while (n < 100 && !try_with_failure(n, isa, &problem, &expected))
        n++;
    CHECK(n > 1 && n < 100);
}

/* Sizes whose workspace no machine has are refused, not wrapped around. */
static void workspace_beyond_all_memory(attn_isa isa)
{
    attn_context *context = isa_context(isa, 2);
    float zero = 0;
    const int64_t huge = INT64_C(1) << 58;
    attn_tensor q = {&zero, ATTN_F32, {1, 1, 1, huge}, {0, 0, 0, 0}};
    attn_tensor v = {&zero, ATTN_F32, {1, 1, 1, 1}, {0, 0, 0, 0}};
    float out[3] = {7, 7, 7};
    attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, 1, 1, 1);
    attn_tensor stats = attn_tensor_packed(out + 1, ATTN_F32, 1, 1, 1, 2);
    CHECK_EQUAL(attn_forward(context, NULL, &q, &q, &v, &o, &stats), ATTN_ERROR_MEMORY);
    CHECK_CONTAINS(attn_message(context), "memory");
    attn_tensor stats_in = attn_tensor_packed(out, ATTN_F32, 1, 1, 1, 2);
    attn_tensor weights = attn_tensor_packed(out + 2, ATTN_F32, 1, 1, 1, 1);
    CHECK_EQUAL(attn_weights(context, NULL, &q, &q, &stats_in, NULL, &weights), ATTN_ERROR_MEMORY);
    CHECK_ALL(out, 7, 3);
    attn_context_destroy(context);
}

/* What one thread of the test does with a context of its own. */
struct worker {
    attn_isa isa;
    const struct attention_problem *problem;
    float *o; /* [rounds][outputs] of the caller */
    attn_status worst;
};

enum { WORKERS = 2, ROUNDS = 20, OUTPUTS = 2 * QUERIES * D };

static void *work(void *argument)
{
    struct worker *worker = argument;
    attn_context *context = isa_context(worker->isa, 1);
    for (int round = 0; round < ROUNDS; round++) {
        attn_tensor o = attn_tensor_packed(worker->o + round * OUTPUTS, ATTN_F32, 1, 2, QUERIES, D);
        const struct attention_problem *problem = worker->problem;
        attn_status status = attn_forward(context, &problem->params, &problem->q, &problem->k,
                                          &problem->v, &o, NULL);
        if (status != ATTN_SUCCESS)
            worker->worst = status;
    }
    attn_context_destroy(context);
    return NULL;
}

static void contexts_side_by_side(attn_isa isa)
{
    struct attention_problem problems[WORKERS];
    struct attention_result expected[WORKERS];
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    attn_context *context = isa_context(isa, 1);
    for (int n = 0; n < WORKERS; n++) {
        attention_make(&problems[n], &(struct attention_sizes){1, 2, 1, QUERIES, KEYS, D, D},
                       (uint64_t)n);
        attention_solve(context, &problems[n], &expected[n]);
        workers[n] = (struct worker){.isa = isa,
                                     .problem = &problems[n],
                                     .o = guarded_floats(ROUNDS * OUTPUTS, GUARD_BEHIND)};
    }
    for (int n = 0; n < WORKERS; n++)
        if (pthread_create(&threads[n], NULL, work, &workers[n]) != 0)
            test_bail_out("no thread");
    for (int n = 0; n < WORKERS; n++) {
        pthread_join(threads[n], NULL);
        CHECK_EQUAL(workers[n].worst, ATTN_SUCCESS);
        for (int round = 0; round < ROUNDS; round++)
            CHECK_SAME_BITS(workers[n].o + round * OUTPUTS, expected[n].o, OUTPUTS);
    }
    attn_context_destroy(context);
}

static void version_of_the_library(const void *argument)
{
    (void)argument;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ATTN_VERSION_MAJOR, ATTN_VERSION_MINOR,
             ATTN_VERSION_PATCH);
    CHECK(strcmp(attn_version(), version) == 0);
}

static void slopes_of_alibi(const void *argument)
{
    (void)argument;
    for (int64_t heads = 0; heads <= 130; heads++) {
        float *slopes = guarded_floats((size_t)heads, GUARD_BEHIND);
        attn_alibi_slopes(heads, slopes);
        int64_t power = 1;
        while (2 * power <= heads)
            power *= 2;
        test_context("%d heads", (int)heads);
        for (int64_t h = 0; h < heads; h++) {
            /* Behind the first `power` heads: every other slope of twice as many. */
            double exponent = h < power ? (double)(h + 1) / (double)power
                                        : (double)(2 * (h - power) + 1) / (double)(2 * power);
            double expected = pow(2, -8 * exponent);
            CHECK_WITHIN(slopes[h], expected, expected * 0x1p-23);
        }
        guarded_release_all();
    }
}

int main(void)
{
    test_run(initial_options, NULL, "attn_options_init sets every field");
    test_run(bad_options, NULL, "bad options are refused");
    test_run(options_of_an_older_version, NULL, "options of version 0.1");
    test_run(no_context, NULL, "a context of NULL");
    test_run(settings_of_a_context, NULL, "threads and ISA of a context");
    test_run(names_of_isas, NULL, "names of ISAs");
    test_run(the_environment_limits_the_isa, NULL,
             "ATTN_ISA limits, and unknown names are refused");
    isa_each("every allocation may fail", every_allocation_may_fail);
    isa_each("workspace beyond all memory", workspace_beyond_all_memory);
    isa_each("contexts side by side in two threads", contexts_side_by_side);
    test_run(version_of_the_library, NULL, "attn_version");
    test_run(slopes_of_alibi, NULL, "slopes of ALiBi");
    return test_finish();
}
