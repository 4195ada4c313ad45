#include "attention/context.h"

#include <stdlib.h>

#include "attention/isa_name.h"
#include "attention/params.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/float_mode.h"
#include "kernel/dot_kernels.h"

/* The upper limit that the environment sets; false for a name that is not known. */
static bool isa_from_environment(attn_isa *isa)
{
    const char *name = getenv("ATTN_ISA");
    *isa = ATTN_ISA_BEST;
    return !name || !*name || attn_isa_from_name(name, isa);
}

attn_status attn_context_create(attn_context **context, const attn_options *options)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    *context = NULL;

    attn_options read;
    attn_isa limit;
    if (!attn_options_read(&read, options) || read.threads < 0 ||
        !(attn_isa_is_known(read.isa) || read.isa == ATTN_ISA_BEST) ||
        !read.allocate != !read.release || (read.parallel_for && read.threads == 0) ||
        !isa_from_environment(&limit))
        return ATTN_ERROR_ARGUMENT;
    /* Both limits hold: of the tables that each allows, the lower one, as the values of the ISAs
     * that one machine can have rise with them. */
    const struct attn_kernels *kernels = attn_kernels_for(limit);
    if (attn_kernels_for(read.isa)->isa < kernels->isa)
        kernels = attn_kernels_for(read.isa);

    struct attn_allocator allocator = attn_allocator_default;
    if (read.allocate)
        allocator = (struct attn_allocator){read.allocate, read.release, read.user};

    struct attn_context *made = allocator.allocate(allocator.user, sizeof *made, ATTN_ALIGNMENT);
    if (!made)
        return ATTN_ERROR_MEMORY;
    *made = (struct attn_context){.kernels = kernels, .allocator = allocator};
    int threads = read.threads ? read.threads : attn_parallel_default_threads();
    if (!attn_parallel_open(&made->parallel, threads, read.parallel_for, read.parallel_user,
                            &made->allocator)) {
        allocator.release(allocator.user, made);
        return ATTN_ERROR_MEMORY;
    }
    *context = made;
    return ATTN_SUCCESS;
}

void attn_context_ask_for_tiles(struct attn_context *context)
{
    if (!context->asked_for_tiles)
        context->kernels = attn_kernels_with_tiles(context->kernels);
    context->asked_for_tiles = true;
}

void attn_context_destroy(attn_context *context)
{
    if (!context)
        return;
    struct attn_allocator allocator = context->allocator;
    attn_parallel_close(&context->parallel, &allocator);
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
    return context->parallel.threads;
}

uint64_t attn_call_begin(struct attn_context *context)
{
    context->error.message[0] = '\0';
    return attn_float_mode_enter();
}

void attn_call_end(uint64_t modes)
{
    attn_float_mode_leave(modes);
}

bool attn_workspace_bytes(const struct attn_context *context, int64_t shared_bytes,
                          int64_t bytes_a_thread, int64_t *bytes)
{
    return shared_bytes >= 0 && bytes_a_thread >= 0 &&
           attn_checked_multiply(bytes_a_thread, context->parallel.threads, bytes) &&
           attn_checked_add(*bytes, shared_bytes, bytes) && (uint64_t)*bytes <= SIZE_MAX;
}

void *attn_context_workspace(struct attn_context *context, int64_t shared_bytes,
                             int64_t bytes_a_thread)
{
    int64_t bytes;
    void *memory = NULL;
    if (attn_workspace_bytes(context, shared_bytes, bytes_a_thread, &bytes))
        memory = attn_workspace_reserve(&context->workspace, &context->allocator, (size_t)bytes);
    if (!memory)
        attn_error_memory(&context->error);
    return memory;
}

struct run {
    void (*body)(void *state, int64_t item, int thread);
    void *state;
    void (*release)(void);
};

static void run_and_release(void *state, int64_t item, int thread)
{
    const struct run *run = state;
    run->body(run->state, item, thread);
    run->release();
}

void attn_context_run(const struct attn_context *context, int64_t items,
                      void (*body)(void *state, int64_t item, int thread), void *state)
{
    const struct attn_dot_kernels *dots = context->kernels->dots;
    if (!dots || !dots->release) {
        attn_parallel_run(&context->parallel, items, body, state);
        return;
    }
    struct run run = {.body = body, .state = state, .release = dots->release};
    attn_parallel_run(&context->parallel, items, run_and_release, &run);
}
