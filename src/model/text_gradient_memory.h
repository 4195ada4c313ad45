/* All memory of a gradient's passes, in one piece. */
#ifndef ATTN_MODEL_TEXT_GRADIENT_MEMORY_H
#define ATTN_MODEL_TEXT_GRADIENT_MEMORY_H

#include "attention/scratch.h"
#include "base/error.h"
#include "base/memory.h"

/* What `counted` has counted, ready to be laid out again in *memory. Refused where the machine has
 * less: "the gradient of a text of N tokens takes 5.2 GiB, 3.1 GiB are available: a shorter text
 * takes less". attn_workspace_release(workspace, &attn_allocator_default) gives it back. */
bool text_gradient_memory_reserve(struct attn_workspace *workspace,
                                  const struct attn_scratch *counted, int64_t tokens,
                                  struct attn_scratch *memory, struct attn_error *error);

#endif
