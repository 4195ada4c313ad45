/* The loops do what they are timed for: each multiply-add, each byte. */
#include "measure/machine_loops.h"

#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "cmocka_test.h"

/* The loops of an ISA that this CPU has, else NULL. */
static const struct machine_loops *runnable_loops(int isa)
{
    attn_isa best = attn_cpu_best_isa();
    bool has =
        isa == ATTN_ISA_SCALAR || isa == (int)best || (isa < (int)best && best != ATTN_ISA_NEON);
    return has ? machine_loops_for((attn_isa)isa) : NULL;
}

static void each_isa_of_this_machine_has_loops(void **state)
{
    (void)state;
    assert_non_null(machine_loops_for(ATTN_ISA_SCALAR));
    assert_non_null(machine_loops_for(attn_cpu_best_isa()));
    assert_null(machine_loops_for(ATTN_ISA_BEST));
}

/* x → 0.999·x + 0.001 moves each of the sums towards 1 by a thousandth of what is missing. */
static void multiply_adds_are_done(void **state)
{
    (void)state;
    for (int isa = ATTN_ISA_SCALAR; isa < ATTN_ISA_BEST; isa++) {
        const struct machine_loops *loops = runnable_loops(isa);
        if (!loops)
            continue;
        double sums = (double)loops->operations_a_round / 2;
        double excess = (double)loops->multiply_add(0) - sums;
        assert_true(excess >= sums);
        for (int64_t rounds = 1; rounds <= 10000; rounds *= 10) {
            double expected = sums + excess * pow(0.999, (double)rounds);
            double error = fabs((double)loops->multiply_add(rounds) - expected);
            assert_true(error <= 2e-4 * expected);
        }
    }
}

static void every_byte_is_read_once(void **state)
{
    (void)state;
    enum { STEPS = 3, STREAMS = 8, STRIDE = (STEPS + 2) * READ_STEP };
    uint64_t *words = aligned_alloc(64, STREAMS * STRIDE);
    assert_non_null(words);
    enum { WORDS_A_STRIDE = STRIDE / sizeof *words, WORDS_READ = STEPS * READ_STEP / 8 };
    for (int isa = ATTN_ISA_SCALAR; isa < ATTN_ISA_BEST; isa++) {
        const struct machine_loops *loops = runnable_loops(isa);
        for (int variant = 0; loops && variant < READ_STREAM_COUNT * READ_HINT_COUNT; variant++) {
            int streams = variant / READ_HINT_COUNT;
            read_loop *loop = loops->read[streams][variant % READ_HINT_COUNT];
            /* Words between the streams, and streams that are not asked for, must not count. */
            uint64_t expected = 0, random = 1;
            for (uint64_t i = 0; i < (uint64_t)STREAMS * WORDS_A_STRIDE; i++) {
                words[i] = random = random * UINT64_C(6364136223846793005) + 1;
                if (i / WORDS_A_STRIDE < UINT64_C(1) << streams && i % WORDS_A_STRIDE < WORDS_READ)
                    expected += words[i];
            }
            assert_true(loop((const unsigned char *)words, STRIDE, STEPS, 4096) == expected);
        }
    }
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_isa_of_this_machine_has_loops),
        cmocka_unit_test(multiply_adds_are_done),
        cmocka_unit_test(every_byte_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
