#include "harness/dots.h"

#include <stddef.h>

#include "attention/context.h"
#include "base/cpu.h"
#include "harness/isa.h"
#include "harness/test.h"
#include "kernel/kernel_table.h"

struct table {
    const char *name;
    const struct attn_kernels *kernels; /* NULL: not on this CPU */
};

/* One of the two bodies. */
struct visit {
    struct table table;
    void (*body)(const struct attn_kernels *kernels);
    void (*context_body)(attn_context *context);
};

static void visit_table(const void *argument)
{
    const struct visit *visit = argument;
    if (!visit->table.kernels) {
        test_skip("%s is not available here", visit->table.name);
        return;
    }
    if (visit->body) {
        visit->body(visit->table.kernels);
        return;
    }
    attn_context *context = isa_context(ATTN_ISA_AVX512, 1);
    context->kernels = visit->table.kernels;
    context->asked_for_tiles = true;
    visit->context_body(context);
    attn_context_destroy(context);
}

static void visit_each(const char *name, struct visit visit)
{
    const struct table tables[] = {
#if defined(__x86_64__)
        {"AVX512_BF16", attn_cpu_has_bf16_dots() ? &attn_kernels_avx512_bf16 : NULL},
#else
        {"a bf16 dot product", NULL}, /* other architectures have none */
#endif
#if defined(ATTN_WITH_AMX)
        {"AMX-BF16", attn_cpu_has_bf16_tiles() ? &attn_kernels_avx512_amx : NULL},
#endif
        {NULL, NULL}
    };
    static bool told_missing[COUNT(tables)];
    for (size_t n = 0; tables[n].name; n++) {
        visit.table = tables[n];
        if (!isa_is_available(ATTN_ISA_AVX512))
            visit.table.kernels = NULL;
        if (visit.table.kernels || !told_missing[n])
            test_run(visit_table, &visit, "%s [%s]", visit.table.kernels ? name : "every test",
                     visit.table.name);
        told_missing[n] = !visit.table.kernels;
    }
}

void dots_each(const char *name, void (*body)(const struct attn_kernels *kernels))
{
    visit_each(name, (struct visit){.body = body});
}

void dots_each_context(const char *name, void (*body)(attn_context *context))
{
    visit_each(name, (struct visit){.context_body = body});
}
