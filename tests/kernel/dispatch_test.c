/* Which kernels an ISA gets. */
#include "harness/test.h"

#include <string.h>

#include "base/cpu.h"
#include "harness/isa.h"
#include "kernel/kernel.h"

static void table_is_complete(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    CHECK_EQUAL(kernels->isa, isa);
    CHECK(kernels->lanes >= 1 && kernels->lanes <= ATTN_MAX_LANES);
    CHECK(kernels->pack_queries && kernels->scores && kernels->raise_maximum && kernels->softmax);
    CHECK(kernels->accumulate && kernels->normalise && kernels->unpack_output);
    CHECK(kernels->weights && kernels->bias_gelu && kernels->layer_norm);
}

static void never_beyond_the_cpu(const void *argument)
{
    (void)argument;
    attn_isa best = attn_cpu_best_isa();
    CHECK_EQUAL(attn_kernels_for(ATTN_ISA_SCALAR)->isa, ATTN_ISA_SCALAR);
    CHECK_EQUAL(attn_kernels_for(ATTN_ISA_BEST)->isa, attn_kernels_for(best)->isa);
    for (int isa = 0; isa <= ATTN_ISA_BEST; isa++) {
        test_context("isa %d", isa);
        attn_isa given = attn_kernels_for((attn_isa)isa)->isa;
        CHECK((int)given <= isa && given <= best);
    }
}

static void cpu_has_a_name_that_fits(const void *argument)
{
    (void)argument;
    char name[64];
    memset(name, 'x', sizeof name);
    attn_cpu_name(name, sizeof name);
    CHECK(memchr(name, '\0', sizeof name) != NULL);
    char cut[4] = {'x', 'x', 'x', 'x'};
    attn_cpu_name(cut, sizeof cut - 1);
    CHECK(memchr(cut, '\0', sizeof cut - 1) != NULL);
    CHECK_EQUAL(cut[3], 'x');
}

int main(void)
{
    isa_each("the table is complete", table_is_complete);
    test_run(never_beyond_the_cpu, NULL, "no ISA beyond the CPU's or the limit");
    test_run(cpu_has_a_name_that_fits, NULL, "the CPU's name fits the size given");
    return test_finish();
}
