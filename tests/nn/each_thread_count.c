#include "each_thread_count.h"

#include <math.h>
#include <stdlib.h>

#include "cmocka_test.h"
#include "each_isa.h"

void each_thread_count(size_t count, void (*body)(const struct compute *compute, float *result))
{
    float *results[2];
    for (int threads = 1; threads <= 4; threads++) {
        float *result = results[threads > 1] = malloc(count * sizeof *result);
        assert_non_null(result);
        for (size_t n = 0; n < count; n++)
            result[n] = NAN;
        struct compute compute = make_compute(threads);
        body(&compute, result);
        compute_destroy(&compute);
        if (threads > 1) {
            assert_memory_equal(results[1], results[0], count * sizeof *result);
            free(results[1]);
        }
    }
    free(results[0]);
}
