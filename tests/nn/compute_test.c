#include "cmocka_test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef ATTN_OPENBLAS
#include <cblas.h>
#endif

#include "base/parallel.h"
#include "kernel/kernel.h"
#include "nn/compute.h"

static void test_kernels_are_those_of_the_context(void **state)
{
    (void)state;
    struct compute compute;
    struct attn_error error;
    assert_true(compute_create(&compute, 3, &error));
    assert_int_equal(attn_context_threads(compute.attention),
                     strcmp(attn_parallel_runtime(), "none") == 0 ? 1 : 3);
    assert_int_equal(compute.kernels->isa, attn_context_isa(compute.attention));
    compute_destroy(&compute);

    assert_int_equal(setenv("ATTN_ISA", "scalar", 1), 0);
    assert_true(compute_create(&compute, 1, &error));
    assert_int_equal(attn_context_isa(compute.attention), ATTN_ISA_SCALAR);
    assert_int_equal(compute.kernels->isa, ATTN_ISA_SCALAR);
    compute_destroy(&compute);
    assert_int_equal(unsetenv("ATTN_ISA"), 0);
}

static void test_threads_of_the_blas(void **state)
{
    (void)state;
#ifdef ATTN_OPENBLAS
    for (int threads = 1; threads <= 3; threads++) {
        struct compute compute;
        struct attn_error error;
        assert_true(compute_create(&compute, threads, &error));
        assert_int_equal(openblas_get_num_threads(), threads);
        compute_destroy(&compute);
    }
#else
    skip_because("the BLAS of this build is not OpenBLAS");
#endif
}

static void test_refusals(void **state)
{
    (void)state;
    struct compute compute;
    struct attn_error error;
    assert_false(compute_create(&compute, 0, &error));
    assert_message(&error, "at least 1");
    compute_destroy(&compute);

    assert_int_equal(setenv("ATTN_ISA", "mmx", 1), 0);
    assert_false(compute_create(&compute, 1, &error));
    assert_message(&error, "ATTN_ISA is 'mmx', but must be scalar, avx2, avx512 or neon");
    compute_destroy(&compute);
    assert_int_equal(unsetenv("ATTN_ISA"), 0);
}

/* OpenMP would begin there with as many as it likes. */
static void *enter_elsewhere(void *user)
{
    attn_parallel_set_threads(7);
    compute_enter(user);
    return (void *)(intptr_t)attn_parallel_default_threads();
}

static void test_another_thread_enters(void **state)
{
    (void)state;
    struct compute compute;
    struct attn_error error;
    pthread_t thread;
    void *threads;
    assert_true(compute_create(&compute, 2, &error));
    assert_int_equal(pthread_create(&thread, NULL, enter_elsewhere, &compute), 0);
    assert_int_equal(pthread_join(thread, &threads), 0);
    assert_int_equal((intptr_t)threads, attn_context_threads(compute.attention));
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_are_those_of_the_context),
        cmocka_unit_test(test_threads_of_the_blas),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_another_thread_enters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
