/* What a context holds. */
#ifndef ATTN_ATTENTION_CONTEXT_H
#define ATTN_ATTENTION_CONTEXT_H

#include "attn.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/kernel.h"

struct attn_context {
    const struct attn_kernels *kernels;
    int threads;
    struct attn_allocator allocator;
    struct attn_workspace workspace; /* shared by the calls, one after another */
    struct attn_error error;
};

/* `bytes` for each of the context's threads; NULL when there is no memory, with the message set. */
void *attn_context_workspace(struct attn_context *context, int64_t bytes_a_thread);

#endif
