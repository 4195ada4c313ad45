#include "harness/isa.h"

#include "attention/isa_name.h"
#include "harness/test.h"

attn_context *isa_context(attn_isa isa, int threads)
{
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    attn_context *context;
    if (attn_context_create(&context, &options) != ATTN_SUCCESS)
        test_bail_out("no context for an instruction set");
    return context;
}

/* One of the two bodies. */
struct visit {
    attn_isa isa;
    void (*body)(attn_isa isa);
    void (*context_body)(attn_context *context);
};

/* An ISA of another architecture than the tests are built for is none that could be missing here.
 */
static bool is_of_this_architecture(attn_isa isa)
{
#if defined(__x86_64__)
    return isa != ATTN_ISA_NEON;
#elif defined(__aarch64__)
    return isa != ATTN_ISA_AVX2 && isa != ATTN_ISA_AVX512;
#else
    return isa == ATTN_ISA_SCALAR;
#endif
}

bool isa_is_available(attn_isa isa)
{
    if (!attn_isa_is_known(isa))
        return false;
    attn_context *context = isa_context(isa, 1);
    attn_isa given = attn_context_isa(context);
    attn_context_destroy(context);
    return given == isa;
}

static void visit_isa(const void *argument)
{
    const struct visit *visit = argument;
    if (!isa_is_available(visit->isa)) {
        test_skip("%s is not available here", attn_isa_name(visit->isa));
        return;
    }
    if (visit->body) {
        visit->body(visit->isa);
        return;
    }
    attn_context *context = isa_context(visit->isa, 1);
    visit->context_body(context);
    attn_context_destroy(context);
}

static void visit_each(const char *name, struct visit visit)
{
    static bool told_missing[ATTN_ISA_BEST];
    for (int value = 0; value < ATTN_ISA_BEST; value++) {
        visit.isa = (attn_isa)value;
        /* Plain C shows an emulator nothing that it does not show elsewhere. */
        if (test_is_reduced() && visit.isa == ATTN_ISA_SCALAR)
            continue;
        if (!attn_isa_is_known(visit.isa) || !is_of_this_architecture(visit.isa))
            continue;
        bool available = isa_is_available(visit.isa);
        if (available || !told_missing[value])
            test_run(visit_isa, &visit, "%s [%s]", available ? name : "every test",
                     attn_isa_name(visit.isa));
        told_missing[value] = !available;
    }
}

void isa_each(const char *name, void (*body)(attn_isa isa))
{
    visit_each(name, (struct visit){.body = body});
}

void isa_each_context(const char *name, void (*body)(attn_context *context))
{
    visit_each(name, (struct visit){.context_body = body});
}
