#include "attention/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/parallel.h"

static const struct {
    attn_isa isa;
    const char *name;
} isa_names[] = {{ATTN_ISA_SCALAR, "scalar"}, {ATTN_ISA_AVX2, "avx2"}};

enum { ISA_COUNT = sizeof isa_names / sizeof isa_names[0] };

const char *attn_isa_name(attn_isa isa)
{
    for (int i = 0; i < ISA_COUNT; i++)
        if (isa_names[i].isa == isa)
            return isa_names[i].name;
    return "unknown";
}

/* False for a value that no ISA of this version has. */
static bool isa_known(attn_isa isa)
{
    return isa == ATTN_ISA_BEST || strcmp(attn_isa_name(isa), "unknown") != 0;
}

/* The upper limit that the environment sets; false for a name that is not known. */
static bool isa_from_environment(attn_isa *isa)
{
    const char *name = getenv("ATTN_ISA");
    *isa = ATTN_ISA_BEST;
    if (!name || !*name)
        return true;
    for (int i = 0; i < ISA_COUNT; i++)
        if (strcmp(isa_names[i].name, name) == 0) {
            *isa = isa_names[i].isa;
            return true;
        }
    return false;
}

void attn_options_init(attn_options *options)
{
    if (!options)
        return;
    *options = (attn_options){.size = sizeof *options, .isa = ATTN_ISA_BEST};
}

attn_status attn_context_create(attn_context **context, const attn_options *options)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    *context = NULL;

    attn_options defaults;
    attn_options_init(&defaults);
    if (!options)
        options = &defaults;
    attn_isa limit;
    if (options->size != sizeof *options || options->threads < 0 || !isa_known(options->isa) ||
        !options->allocate != !options->release || !isa_from_environment(&limit))
        return ATTN_ERROR_ARGUMENT;
    if (limit > options->isa)
        limit = options->isa;

    struct attn_allocator allocator = attn_allocator_default;
    if (options->allocate)
        allocator = (struct attn_allocator){options->allocate, options->release, options->user};

    struct attn_context *made = allocator.allocate(allocator.user, sizeof *made, ATTN_ALIGNMENT);
    if (!made)
        return ATTN_ERROR_MEMORY;
    *made = (struct attn_context){
        .kernels = attn_kernels_for(limit),
        .threads = options->threads ? options->threads : attn_parallel_default_threads(),
        .allocator = allocator,
    };
    *context = made;
    return ATTN_SUCCESS;
}

void attn_context_destroy(attn_context *context)
{
    if (!context)
        return;
    struct attn_allocator allocator = context->allocator;
    attn_workspace_release(&context->workspace, &allocator);
    allocator.release(allocator.user, context);
}

const char *attn_message(const attn_context *context)
{
    return context ? context->error.message
                   : "there is no context: attn_context_create says by its status why it made none";
}

attn_isa attn_context_isa(const attn_context *context)
{
    return context->kernels->isa;
}

int attn_context_threads(const attn_context *context)
{
    return context->threads;
}

void *attn_context_workspace(struct attn_context *context, int64_t bytes_a_thread)
{
    int64_t bytes;
    void *memory = NULL;
    if (attn_checked_multiply(bytes_a_thread, context->threads, &bytes) &&
        (uint64_t)bytes <= SIZE_MAX)
        memory = attn_workspace_reserve(&context->workspace, &context->allocator, (size_t)bytes);
    if (!memory)
        attn_error_memory(&context->error);
    return memory;
}
