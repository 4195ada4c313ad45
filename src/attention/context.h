/* What a context holds. */
#ifndef ATTN_ATTENTION_CONTEXT_H
#define ATTN_ATTENTION_CONTEXT_H

#include "attn.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernel/kernel.h"

struct attn_context {
    const struct attn_kernels *kernels;
    bool asked_for_tiles;
    struct attn_parallel parallel;
    struct attn_allocator allocator;
    struct attn_workspace workspace; /* shared by the calls, one after another */
    struct attn_error error;
};

/* What every call of the API does first and last: no message yet, and the floating-point modes are
 * the default ones while it lasts. `modes` is what attn_call_begin returned. */
uint64_t attn_call_begin(struct attn_context *context);
void attn_call_end(uint64_t modes);

/* Before products of bf16 pairs: takes the kernels that make them in tiles. The system has to give
 * those to the process, so a context that never needs them does not ask. */
void attn_context_ask_for_tiles(struct attn_context *context);

/* shared_bytes, and behind them bytes_a_thread for each of the context's threads (both multiples of
 * ATTN_ALIGNMENT, or negative where sizes have left 64 bits); NULL when there is no memory, with
 * the message set. */
void *attn_context_workspace(struct attn_context *context, int64_t shared_bytes,
                             int64_t bytes_a_thread);

/* How much that is; false where it does not fit. */
bool attn_workspace_bytes(const struct attn_context *context, int64_t shared_bytes,
                          int64_t bytes_a_thread, int64_t *bytes);

/* Calls body(state, item, thread) for each item on the context's threads: attn_parallel_run. */
void attn_context_run(const struct attn_context *context, int64_t items,
                      void (*body)(void *state, int64_t item, int thread), void *state);

#endif
