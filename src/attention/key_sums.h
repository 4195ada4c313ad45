/* What each key receives from the queries: the sums of the columns of the weights, from the rows'
 * statistics, in a pass of its own over Q·Kᵀ.
 *
 * An item is a head and a chunk of keys: all queries that keep some of it go through it in one
 * order, so that the sums need no atomics and their bits do not depend on the threads. */
#ifndef ATTN_ATTENTION_KEY_SUMS_H
#define ATTN_ATTENTION_KEY_SUMS_H

#include "attention/inspection.h"
#include "attention/scratch.h"

struct attn_key_sums {
    const struct attn_problem *problem; /* with statistics; not f64 */
    const struct attn_inspected *inspected;
    const struct attn_kernels *kernels;
    int64_t items;
    int64_t chunks;       /* of a head, where sequences are not packed */
    int64_t *part_chunks; /* [sequences + 1]: those before each sequence, where they are */
    int64_t shared_bytes, bytes_a_thread;
    char *workspace; /* of the threads */
};

/* Plans it; false where sizes leave 64 bits. */
bool attn_key_sums_plan(struct attn_key_sums *sums, const struct attn_context *context,
                        const struct attn_problem *problem, const struct attn_inspected *inspected);

/* Does it, with shared_bytes at `shared` and bytes_a_thread for each thread at `threads`; keys that
 * no sequence holds get 0. */
void attn_key_sums_execute(struct attn_key_sums *sums, const struct attn_context *context,
                           void *shared, void *threads);

/* Keys of a chunk, for attn_explain. */
int64_t attn_key_sums_chunk(void);

#endif
