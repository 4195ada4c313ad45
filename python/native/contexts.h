/* contexts.h: contexts of libattn for calls that may come from many threads at once. */
#ifndef ATTN_PYTHON_CONTEXTS_H
#define ATTN_PYTHON_CONTEXTS_H

#include <attn.h>
#include <stdbool.h>

struct pooled_context;

/* A context of so many threads (0: the default), for the caller alone until contexts_give. NULL
 * with an exception set. The GIL is held. */
struct pooled_context *contexts_take(int threads);
void contexts_give(struct pooled_context *context);

attn_context *contexts_inside(struct pooled_context *context);

/* The default number of threads from now on; 0: as many as the runtime, or the host's, gives when a
 * call begins. */
void contexts_set_threads(int threads);
int contexts_threads(void);

/* Contexts that are made from now on use the host's threads. False where there are none. */
bool contexts_share_threads(void);

#endif
