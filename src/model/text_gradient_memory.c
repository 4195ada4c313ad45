#include "model/text_gradient_memory.h"

#include "base/available_memory.h"

/* Up to here nobody asks what is available. */
enum { SMALL = 64 * 1024 * 1024 };

static bool refuse_size(int64_t tokens, double bytes, double available, struct attn_error *error)
{
    const double gibibyte = 1024.0 * 1024.0 * 1024.0;
    return attn_error_set(error,
                          "the gradient of a text of %lld tokens takes %.1f GiB, %.1f GiB are "
                          "available: a shorter text takes less",
                          (long long)tokens, bytes / gibibyte, available / gibibyte);
}

bool text_gradient_memory_reserve(struct attn_workspace *workspace,
                                  const struct attn_scratch *counted, int64_t tokens,
                                  struct attn_scratch *memory, struct attn_error *error)
{
    if (counted->overflow || (uint64_t)counted->used > SIZE_MAX)
        return attn_error_memory(error);
    if (counted->used > SMALL) {
        const int64_t available = attn_available_memory("");
        if (counted->used > available)
            return refuse_size(tokens, (double)counted->used, (double)available, error);
    }
    *memory = (struct attn_scratch){
        attn_workspace_reserve(workspace, &attn_allocator_default, (size_t)counted->used), 0,
        false};
    return memory->base || attn_error_memory(error);
}
