#define _DEFAULT_SOURCE /* madvise is not in POSIX */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Blocks of at least a huge page lie on whole ones where the system has them: matrices are read by
 * rows far apart, and with small pages most of those rows miss the TLB. */
enum { HUGE_PAGE = 2 * 1024 * 1024 };

static void *default_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE)
        alignment = HUGE_PAGE;
#endif
    /* aligned_alloc wants a multiple of the alignment, and 0 bytes may give NULL. */
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, rounded ? rounded : alignment);
#ifdef MADV_HUGEPAGE
    if (memory && alignment == HUGE_PAGE)
        (void)madvise(memory, rounded, MADV_HUGEPAGE); /* a wish: small pages do too */
#endif
    return memory;
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
