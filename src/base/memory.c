#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

static void *default_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes > SIZE_MAX - alignment)
        return NULL;
    /* aligned_alloc wants a multiple of the alignment, and 0 bytes may give NULL. */
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    return aligned_alloc(alignment, rounded ? rounded : alignment);
}

static void default_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

const struct attn_allocator attn_allocator_default = {default_allocate, default_release, NULL};

void *attn_workspace_reserve(struct attn_workspace *workspace,
                             const struct attn_allocator *allocator, size_t bytes)
{
    if (workspace->memory && workspace->size >= bytes)
        return workspace->memory;
    attn_workspace_release(workspace, allocator);
    workspace->memory = allocator->allocate(allocator->user, bytes ? bytes : 1, ATTN_ALIGNMENT);
    workspace->size = workspace->memory ? bytes : 0;
    return workspace->memory;
}

void attn_workspace_release(struct attn_workspace *workspace,
                            const struct attn_allocator *allocator)
{
    if (workspace->memory)
        allocator->release(allocator->user, workspace->memory);
    workspace->memory = NULL;
    workspace->size = 0;
}
