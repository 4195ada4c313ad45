#include "harness/isa.h"

#include <string.h>

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

struct visit {
    attn_isa isa;
    void (*body)(attn_isa isa);
};

static bool is_known(attn_isa isa)
{
    return strcmp(attn_isa_name(isa), "unknown") != 0;
}

bool isa_is_available(attn_isa isa)
{
    if (!is_known(isa))
        return false;
    attn_context *context = isa_context(isa, 1);
    attn_isa given = attn_context_isa(context);
    attn_context_destroy(context);
    return given == isa;
}

static void visit_isa(const void *argument)
{
    const struct visit *visit = argument;
    if (isa_is_available(visit->isa))
        visit->body(visit->isa);
    else
        test_skip("%s is not available here", attn_isa_name(visit->isa));
}

void isa_each(const char *name, void (*body)(attn_isa isa))
{
    for (int value = 0; value < ATTN_ISA_BEST; value++) {
        struct visit visit = {(attn_isa)value, body};
        if (is_known(visit.isa))
            test_run(visit_isa, &visit, "%s [%s]", name, attn_isa_name(visit.isa));
    }
}
