/* Clock, median, and rates of the machine: that they are numbers, not how large. */
#include <math.h>

#include "base/cpu.h"
#include "cmocka_test.h"
#include "measure/fma_peak.h"
#include "measure/read_bandwidth.h"
#include "measure/timing.h"

enum { MEMORY_SIZE = 4 << 20 };

static void open_threads(struct attn_parallel *parallel, int threads)
{
    assert_true(attn_parallel_open(parallel, threads, NULL, NULL, &attn_allocator_default));
}

static void the_clock_runs_forwards(void **state)
{
    (void)state;
    double last = timing_now();
    for (int i = 0; i < 1000; i++) {
        double now = timing_now();
        assert_true(now >= last);
        last = now;
    }
}

static void the_median_is_in_the_middle(void **state)
{
    (void)state;
    assert_true(timing_median((double[]){7}, 1) == 7);
    assert_true(timing_median((double[]){3, 1}, 2) == 2);
    assert_true(timing_median((double[]){9, 1, 4}, 3) == 4);
    assert_true(timing_median((double[]){8, 1, 4, 2}, 4) == 3);
}

static void the_peak_is_a_rate(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct attn_parallel parallel;
        open_threads(&parallel, threads);
        attn_isa isas[] = {ATTN_ISA_SCALAR, attn_cpu_best_isa()};
        for (int i = 0; i < 2; i++) {
            struct fma_peak peak;
            assert_true(fma_peak_open(&peak, isas[i], &parallel));
            double rate = fma_peak_sample(&peak);
            assert_true(rate > 0 && isfinite(rate));
        }
        struct fma_peak none;
        assert_false(fma_peak_open(&none, ATTN_ISA_BEST, &parallel));
        attn_parallel_close(&parallel, &attn_allocator_default);
    }
}

static void the_bandwidth_is_a_rate(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct attn_parallel parallel;
        open_threads(&parallel, threads);
        struct read_bandwidth bandwidth;
        struct attn_error error = {""};
        assert_true(
            read_bandwidth_open(&bandwidth, attn_cpu_best_isa(), &parallel, MEMORY_SIZE, &error));
        for (int i = 0; i < READ_VARIANTS; i++) {
            double rate = bandwidth.variants[i].rate;
            assert_true(rate > 0 && isfinite(rate));
            assert_true(i == 0 || rate <= bandwidth.variants[i - 1].rate);
        }
        double rate = read_bandwidth_sample(&bandwidth);
        assert_true(rate > 0 && isfinite(rate));
        read_bandwidth_close(&bandwidth);
        attn_parallel_close(&parallel, &attn_allocator_default);
    }
}

static void what_cannot_be_measured_is_told(void **state)
{
    (void)state;
    struct attn_parallel parallel;
    open_threads(&parallel, 1);
    struct read_bandwidth bandwidth;
    struct attn_error error = {""};
    assert_false(read_bandwidth_open(&bandwidth, ATTN_ISA_BEST, &parallel, MEMORY_SIZE, &error));
    assert_message(&error, "no read loop");
    read_bandwidth_close(&bandwidth);
    attn_parallel_close(&parallel, &attn_allocator_default);
}

static void the_fastest_loop_is_described(void **state)
{
    (void)state;
    struct read_bandwidth bandwidth = {
        .variants = {{.streams = 2, .hint = READ_HINT_ONCE, .distance = 512}}};
    char text[64];
    read_bandwidth_describe(&bandwidth, text, sizeof text);
    assert_string_equal(text, "4 streams, non-temporal prefetch 512 bytes ahead");
    bandwidth.variants[0] = (struct read_variant){.hint = READ_HINT_NONE};
    read_bandwidth_describe(&bandwidth, text, sizeof text);
    assert_string_equal(text, "1 stream, no prefetch");
    read_bandwidth_describe(&bandwidth, text, 4);
    assert_string_equal(text, "1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_runs_forwards),
        cmocka_unit_test(the_median_is_in_the_middle),
        cmocka_unit_test(the_peak_is_a_rate),
        cmocka_unit_test(the_bandwidth_is_a_rate),
        cmocka_unit_test(what_cannot_be_measured_is_told),
        cmocka_unit_test(the_fastest_loop_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
