/* Memory of a libattn context: the caller's allocator, or the C library's. */
#ifndef ATTN_BASE_MEMORY_H
#define ATTN_BASE_MEMORY_H

#include <stddef.h>

enum { ATTN_ALIGNMENT = 64 }; /* a cache line, and the widest vector register */

struct attn_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
};

/* Over aligned_alloc and free; large blocks on huge pages where the system has them. */
extern const struct attn_allocator attn_allocator_default;

/* A block that grows and never shrinks; its content is lost when it grows. Start from zeros. */
struct attn_workspace {
    void *memory;
    size_t size;
};

/* At least `bytes` bytes aligned to ATTN_ALIGNMENT, or NULL (the workspace is then empty). */
void *attn_workspace_reserve(struct attn_workspace *workspace,
                             const struct attn_allocator *allocator, size_t bytes);
void attn_workspace_release(struct attn_workspace *workspace,
                            const struct attn_allocator *allocator);

#endif
