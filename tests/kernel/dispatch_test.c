/* Which kernels an ISA gets. */
#include "harness/test.h"

#include <string.h>

#include "base/cpu.h"
#include "harness/isa.h"
#include "kernel/decode_kernels.h"
#include "kernel/gradient_kernels.h"
#include "kernel/kernel_table.h"
#include "kernel/matrix_kernels.h"

static void table_is_complete(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    CHECK_EQUAL(kernels->isa, isa);
    CHECK(kernels->vector_lanes >= 1 && 2 * kernels->vector_lanes <= ATTN_MAX_LANES);
    CHECK(kernels->pack_queries && kernels->scores && kernels->raise_maximum && kernels->softmax);
    CHECK(kernels->accumulate && kernels->normalise && kernels->unpack_output);
    CHECK(kernels->weights && kernels->activate && kernels->activate_backward);
    CHECK(kernels->swiglu && kernels->swiglu_backward && kernels->cross_entropy);
    CHECK(kernels->layer_norm && kernels->layer_norm_backward);
    CHECK(kernels->rms_norm && kernels->rms_norm_backward);
    CHECK(kernels->soft_cap && kernels->add_bias && kernels->subtract_distance);
    CHECK(kernels->exclude && kernels->exclusion_words && kernels->widen && kernels->narrow);
    CHECK(kernels->dropout && kernels->multiply);
    CHECK(kernels->gradients != NULL);
    if (kernels->gradients)
        CHECK(kernels->gradients->dots && kernels->gradients->softmax &&
              kernels->gradients->softmax_dropout && kernels->gradients->add_rows);
    CHECK(kernels->decode != NULL);
    if (kernels->decode)
        CHECK(kernels->decode->softmax && kernels->decode->merge && kernels->decode->finish &&
              kernels->decode->is_finite);
    CHECK(kernels->matrices != NULL);
    if (kernels->matrices)
        CHECK(kernels->matrices->vector_bytes && kernels->matrices->pack_vector &&
              kernels->matrices->multiply && kernels->matrices->unpack &&
              kernels->matrices->unpack_bf16);
    for (int storage = 0; kernels->decode && storage < ATTN_STORAGE_COUNT; storage++) {
        const struct attn_decode_storage *functions = &kernels->decode->storage[storage];
        test_context("decode, storage %d", storage);
        CHECK(functions->pack && functions->unpack && functions->scores && functions->blend);
    }
    CHECK(!kernels->dots || (isa == ATTN_ISA_AVX512 && attn_cpu_has_bf16_dots()));
    CHECK(!kernels->dots == !kernels->dot_gradients);
}

/* Whether code for `isa` may run where the best ISA is `best`: each architecture has a chain. */
static bool is_within(attn_isa isa, attn_isa best)
{
    if (isa == ATTN_ISA_SCALAR || isa == best)
        return true;
    return isa == ATTN_ISA_AVX2 && best == ATTN_ISA_AVX512;
}

static void never_beyond_the_cpu(const void *argument)
{
    (void)argument;
    attn_isa best = attn_cpu_best_isa();
    CHECK_EQUAL(attn_kernels_for(ATTN_ISA_SCALAR)->isa, ATTN_ISA_SCALAR);
    CHECK_EQUAL(attn_kernels_for(ATTN_ISA_BEST)->isa, best);
    for (int isa = 0; isa <= ATTN_ISA_BEST; isa++) {
        test_context("isa %d", isa);
        attn_isa given = attn_kernels_for((attn_isa)isa)->isa;
        CHECK(is_within(given, best));
        if (isa != ATTN_ISA_BEST)
            CHECK(is_within(given, (attn_isa)isa));
    }
}

/* The highest table that both the limit and the CPU allow; of another architecture's limit only
 * plain C is left. */
static void limits_lower(const void *argument)
{
    (void)argument;
    attn_isa best = attn_cpu_best_isa();
    CHECK_EQUAL(attn_kernels_for(best)->isa, best);
    if (best == ATTN_ISA_AVX512) {
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_AVX2)->isa, ATTN_ISA_AVX2);
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_NEON)->isa, ATTN_ISA_SCALAR);
    }
    if (best == ATTN_ISA_AVX2) {
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_AVX512)->isa, ATTN_ISA_AVX2);
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_NEON)->isa, ATTN_ISA_SCALAR);
    }
    if (best == ATTN_ISA_NEON) {
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_AVX2)->isa, ATTN_ISA_SCALAR);
        CHECK_EQUAL(attn_kernels_for(ATTN_ISA_AVX512)->isa, ATTN_ISA_SCALAR);
    }
}

/* The best products of bf16 pairs that the CPU has, and with the highest limit only. */
static void products_are_the_best(const void *argument)
{
    (void)argument;
    const struct attn_kernels *kernels = attn_kernels_for(ATTN_ISA_BEST);
    CHECK(!kernels->dots == !attn_cpu_has_bf16_dots());
    CHECK(!attn_kernels_for(ATTN_ISA_AVX2)->dots);
    CHECK(!attn_cpu_has_bf16_tiles() || attn_cpu_has_bf16_dots());
#if defined(ATTN_WITH_AMX)
    CHECK(kernels != &attn_kernels_avx512_amx); /* only who needs tiles asks for them */
    const struct attn_kernels *tiles = attn_kernels_with_tiles(kernels);
    CHECK((tiles == &attn_kernels_avx512_amx) == attn_cpu_has_bf16_tiles());
    CHECK(attn_kernels_with_tiles(tiles) == tiles);
    CHECK_EQUAL(attn_cpu_has_bf16_tiles(), attn_cpu_has_bf16_tiles());
#endif
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
    test_run(limits_lower, NULL, "a limit lowers within its architecture, else to plain C");
    test_run(products_are_the_best, NULL, "the best products of bf16 pairs");
    test_run(cpu_has_a_name_that_fits, NULL, "the CPU's name fits the size given");
    return test_finish();
}
