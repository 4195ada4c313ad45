/* Every function of the vector vocabularies against the same in plain C: vocabulary.c, compiled
 * once an instruction set. This file is compiled without flags: it runs on any CPU. */
#include "vocabulary.h"

#include "harness/isa.h"
#include "harness/test.h"

static const struct {
    attn_isa isa;
    void (*run)(void);
} vocabularies[] = {
#if defined(__x86_64__)
    {ATTN_ISA_AVX2, vocabulary_avx2},
    {ATTN_ISA_AVX512, vocabulary_avx512},
#elif defined(__aarch64__)
    {ATTN_ISA_NEON, vocabulary_neon},
#endif
    {ATTN_ISA_SCALAR, NULL}, /* has none */
};

static void not_here(const void *isa)
{
    test_skip("%s is not available here", attn_isa_name(*(const attn_isa *)isa));
}

int main(void)
{
    for (size_t i = 0; vocabularies[i].run; i++) {
        attn_isa isa = vocabularies[i].isa;
        if (isa_is_available(isa))
            vocabularies[i].run();
        else
            test_run(not_here, &isa, "vocabulary [%s]", attn_isa_name(isa));
    }
    return test_finish();
}
